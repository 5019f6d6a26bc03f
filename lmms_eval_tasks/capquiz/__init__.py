"""CapQuiz: captions put to a multiple-choice test."""
