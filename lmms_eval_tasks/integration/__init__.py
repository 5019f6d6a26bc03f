"""Registration with lmms-eval, and the functions of it that are wrapped."""
