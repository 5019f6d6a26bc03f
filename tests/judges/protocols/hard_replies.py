r"""Hard replies of judges, written out, and what a careful person reads in each.

The readings come from the prompts and the papers, not from what a reader happens to do. A reply is
*clear* where a person who knows the prompt reads one verdict without hesitation. Where there is no
verdict, or reasonable people differ, the reading is ``None``; readings that a person may well
defend are then named in ``allowed``. A reader may always leave a reply unread.

Readings: VDC (verdict, score); VidCapBench and VCapsBench a label; CapQuiz a letter; G-VEval a tuple
of four numbers (accuracy, completeness, conciseness, relevance) or of one, on the scale 0 to 100.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from lmms_eval_captions.judges.protocols.gveval import GVeval
from lmms_eval_captions.judges.protocols.letters import read_choice
from lmms_eval_captions.judges.protocols.vcapsbench import read_answer
from lmms_eval_captions.judges.protocols.vdc import read_match
from lmms_eval_captions.judges.protocols.vidcapbench import read_correctness
from lmms_eval_captions.judges.request import Reply

Reader = Literal["vdc", "vidcapbench", "vcapsbench", "capquiz", "gveval_accr", "gveval_overall"]
Reading = tuple[str, float] | str | tuple[float, ...] | None

MENU: Final = (
    "A red car",
    "A blue car",
    "A bicycle",
    "Two dogs",
    "A red car with a white stripe",
    "Cannot be determined",
)
"""The options of CapQuiz's replies below; one option is the beginning of another."""


@dataclass(frozen=True, slots=True)
class HardReply:
    """One reply."""

    reader: Reader
    text: str
    reads: Reading
    """What a person reads, ``None`` where there is no verdict or people differ."""
    why: str
    allowed: tuple[Reading, ...] = ()
    """Readings that a person may defend where ``reads`` is ``None``."""
    finish_reason: str | None = "stop"
    cuttable: bool = True
    """Whether each beginning of the reply is to be read as the whole, or not at all. Not so where a
    beginning is a whole reply of its own, as with reasoning that only its closing tag gives away."""

    @property
    def clear(self) -> bool:
        """Whether a person reads one verdict without hesitation."""
        return self.reads is not None


def _gveval(reply: Reply, *, setting: GVeval) -> Reading:
    read = setting.read(reply)
    return None if read is None else tuple(read[0][name] for name in setting.dimensions)


READERS: Final[dict[Reader, Callable[[Reply], Reading]]] = {
    "vdc": read_match,
    "vidcapbench": read_correctness,
    "vcapsbench": read_answer,
    "capquiz": lambda reply: read_choice(reply, MENU),
    "gveval_accr": partial(_gveval, setting=GVeval("ref_only", criteria="accr")),
    "gveval_overall": partial(_gveval, setting=GVeval("ref_only", criteria="overall")),
}


def _none(reader: Reader, text: str, why: str, *allowed: Reading) -> HardReply:
    return HardReply(reader, text, None, why, allowed)


_vdc = partial(HardReply, "vdc")
_vdc_none = partial(_none, "vdc")
_YES4: Final = ("yes", 4.0)
_YES5: Final = ("yes", 5.0)
_NO0: Final = ("no", 0.0)
_NO1: Final = ("no", 1.0)

VDC: Final[tuple[HardReply, ...]] = (
    _vdc(
        "To evaluate this, compare the two answers.\n\n1. The correct answer is \"a red car\".\n2. The predicted answer is \"a car\".\n\nThe colour is missing.\n\n{'pred': 'yes', 'score': 3}",
        ("yes", 3.0),
        "numbered steps first (GPT-4o)",
    ),
    _vdc(
        "### Evaluation\n\n**Pred**: Yes  \n**Score**: 5  \n\n**Reason**: both say that the dog is brown.",
        _YES5,
        "headings and bold",
    ),
    _vdc("Output: {'pred': 'no', 'score': 0}", _NO0, "a label before"),
    _vdc('"pred": "yes", "score": 5', _YES5, "no braces"),
    _vdc("{'pred': 'no', 'score': 2}\n\nScore: 2/5", ("no", 2.0), "the score restated out of five"),
    HardReply(
        "vdc",
        '{"pred": "yes", "score": 4}\n{"pred": "yes", "score": 4}\n{"pred": "yes"',
        _YES4,
        "restated until it is cut (SmolLM)",
        finish_reason="length",
    ),
    _vdc_none(
        "{'pred': 'yes', 'score': 4.8}.\n{'pred': 'no', 'score': 0.2}.\n{'pred': 'yes', 'score': 4.8}.",
        "three dictionaries (SmolLM)",
    ),
    _vdc_none(
        "The predicted answer is: 'red'. The correct answer is: 'red'. The score is 5.",
        "no verdict",
        _YES5,
    ),
    _vdc_none("pred = 'yes'\nscore = 4\nprint({'pred': pred, 'score': score})", "code", _YES4),
    _vdc_none(
        "{'pred': 'no', 'score': 1} ({'pred': 'yes'} would need the colour.)",
        "half of another verdict",
        _NO1,
    ),
    _vdc("{'pred': 'yes', 'score': 5}", _YES5, "as asked"),
    _vdc("{'pred': 'yes', 'score': 4.8}", ("yes", 4.8), "exactly the form of the example"),
    _vdc("{'pred': 'no', 'score': 5}", ("no", 5.0), "well formed, whatever its values"),
    _vdc("```python\n{'pred': 'no', 'score': 1}\n```", _NO1, "fenced Python"),
    _vdc('```json\n{\n  "pred": "no",\n  "score": 2\n}\n```', ("no", 2.0), "fenced JSON (Qwen)"),
    _vdc('{"pred": true, "score": 4}', _YES4, "JSON true"),
    _vdc('{"pred": false, "score": 0}', _NO0, "JSON false"),
    _vdc("{'pred': 'True', 'score': 4}", _YES4, "true as a word"),
    _vdc(
        '{"pred": "no", "score": 1, "match": true, "explanation": "A verdict such as {\'pred\': \'yes\', \'score\': 5} would be too kind."}',
        _NO1,
        "the explanation of well-formed JSON is free text",
    ),
    _vdc(
        '{"pred": "yes", "score": 4, "notes": null, "reason": "pred: no, score: 0 would be unfair"}',
        _YES4,
        "JSON null beside a pair in the reason",
    ),
    _vdc('{"evaluation": {"pred": "yes", "score": 4}}', _YES4, "nested"),
    _vdc("{'pred': 'no', 'score': 1, 'why': 'the sign reads \"}\"'}", _NO1, "a brace in a string"),
    _vdc("{'why': 'it says {red}', 'pred': 'yes', 'score': 4}", _YES4, "braces in a string first"),
    _vdc("yes, 4", _YES4, "a bare pair"),
    _vdc("No. Score: 0.", _NO0, "a bare pair with a label"),
    _vdc("no\n0", _NO0, "a pair on two lines"),
    _vdc("Pred: no\nScore: 0", _NO0, "labelled lines"),
    _vdc("**Pred:** yes\n**Score:** 4", _YES4, "bold labels"),
    _vdc("**pred**: **no**, **score**: **1**", _NO1, "bold values"),
    _vdc("pred = 'yes', score = 4", _YES4, "assignments"),
    _vdc("- pred: no\n- score: 1\n", _NO1, "a list"),
    _vdc("pred: 'no'; score: 3.5", ("no", 3.5), "a semicolon between"),
    _vdc("| pred | score |\n|------|-------|\n| yes  | 4     |", _YES4, "a table"),
    _vdc("<pred>yes</pred>\n<score>4</score>", _YES4, "tags"),
    _vdc("dict(pred='yes', score=4)", _YES4, "a call of dict"),
    _vdc("[{'pred': 'no', 'score': 1}]", _NO1, "a list of one"),
    _vdc("{{'pred': 'yes', 'score': 4}}", _YES4, "braces doubled as in a template"),
    _vdc("\"{'pred': 'no', 'score': 1}\"", _NO1, "the dictionary as a quoted string"),
    _vdc(r'"{\"pred\": \"no\", \"score\": 1}"', _NO1, "JSON within a JSON string"),
    _vdc(r"\boxed{\{'pred': 'yes', 'score': 5\}}", _YES5, "boxed in LaTeX"),
    _vdc("{‘pred’: ‘yes’, ‘score’: 4}", _YES4, "typographic quotation marks"),
    _vdc("{“pred”: “no”, “score”: 1}", _NO1, "typographic double quotation marks"),
    _vdc("{'pred'：'yes'，'score'：4}", _YES4, "full-width colon and comma"),
    _vdc("评价结果：{'pred': 'yes', 'score': 4}。", _YES4, "Chinese around the dictionary"),
    _vdc("response = {'pred': 'yes', 'score': 4}", _YES4, "assigned to a name"),
    _vdc(
        "```python\nresult = {'pred': 'no', 'score': 2}\nprint(result)\n```",
        ("no", 2.0),
        "code with one verdict",
    ),
    _vdc("{'pred': 'yes',  # same colour\n 'score': 4}", _YES4, "a comment in the dictionary"),
    _vdc("{'pred': 'yes', 'score': 4,}", _YES4, "a trailing comma"),
    _vdc("{'Pred': 'Yes', 'Score': 5}", _YES5, "keys in upper case"),
    _vdc("{pred: no, score: 1}", _NO1, "no quotation marks"),
    _vdc("{'score': 1, 'pred': 'no'}", _NO1, "the other order"),
    _vdc("{'pred': 'no', 'score': '1'}", _NO1, "the score as text"),
    _vdc("{'pred': 'yes', 'score': 5.}", _YES5, "a number with a closing point"),
    _vdc("{'pred': 'yes', 'score': 2.75}", ("yes", 2.75), "two decimals"),
    _vdc("{ 'pred' : 'yes' , 'score' : 4 }", _YES4, "blanks everywhere"),
    _vdc(
        "Sure! Here is the evaluation:\n\n{'pred': 'yes', 'score': 4}\n\nThe predicted answer matches the correct answer.",
        _YES4,
        "Llama's frame around the dictionary",
    ),
    _vdc(
        "{'pred': 'yes', 'score': 4}\n\nExplanation: the colour is right; it is not a 5 since the make is missing.",
        _YES4,
        "a note that names another score without giving it",
    ),
    _vdc(
        "{'pred': 'no', 'score': 0}\n\nThe predicted answer says \"yes\" while the correct answer is \"no\".",
        _NO0,
        "the answers to the question are themselves yes and no",
    ),
    _vdc("{'pred': 'yes', 'score': 5}assistant\n\n{'pred': 'yes', 'score': 5}", _YES5, "restated"),
    _vdc(
        "{'pred': 'no', 'score': 1}\n\nFinal answer: {'pred': 'no', 'score': 1}", _NO1, "restated"
    ),
    _vdc("{'pred': 'no', 'score': 1}<|im_end|>", _NO1, "a control token behind"),
    _vdc("I apologize for the confusion. {'pred': 'no', 'score': 1}", _NO1, "an apology before"),
    _vdc(
        "<think>\nMaybe {'pred': 'no', 'score': 0}? No, a sedan is a car.\n</think>\n\n{'pred': 'yes', 'score': 4}",
        _YES4,
        "reasoning of DeepSeek with another verdict",
    ),
    _vdc(
        "The sedan is a car, so they match.\n</think>\n{'pred': 'yes', 'score': 4}",
        _YES4,
        "reasoning whose opening tag is in the template",
    ),
    HardReply(
        "vdc",
        "First thought {'pred': 'no', 'score': 0}, but they match.</think>{'pred': 'yes', 'score': 4}",
        _YES4,
        "a verdict in reasoning without an opening tag",
        cuttable=False,
    ),
    _vdc("Yes, score: 4/5", _YES4, "out of the scale's own five"),
    _vdc("pred: no\nscore: 1 out of 5", _NO1, "out of the scale's own five, in words"),
    _vdc(
        '{"question": "Is it red?", "answer": "no", "pred": "yes", "score": 4}',
        _YES4,
        "the gold answer is a no",
    ),
    # No verdict, or two.
    _vdc_none(
        "{'pred': 'no', 'score': 0} Note: {'pred': 'yes', 'score': 4.8} was only the example.",
        "the example beside another verdict",
        _NO0,
    ),
    _vdc_none(
        "For example, your response should look like this: {'pred': 'yes', 'score': 4.8}.",
        "the prompt's sentence echoed",
        ("yes", 4.8),
    ),
    _vdc_none(
        "{'pred': 'no', 'score': 1}\n\nFor example, your response should look like this: {'pred': 'yes', 'score': 4.8}.",
        "the prompt's sentence beside a verdict",
        _NO1,
    ),
    _vdc_none("pred: yes -> no, score: 4 -> 1", "corrected with an arrow", _NO1),
    _vdc_none("Not 'pred': 'yes', 'score': 5.", "negated"),
    _vdc_none("It is not {'pred': 'yes', 'score': 5}.", "negated before the dictionary"),
    _vdc_none("It would be wrong to answer {'pred': 'yes', 'score': 5}.", "rejected"),
    _vdc_none("If the colour were red, I would say {'pred': 'yes', 'score': 5}.", "conditional"),
    _vdc_none(
        "{'pred': 'no', 'score': 1} Wait, on reflection: {'pred': 'yes', 'score': 4}",
        "corrected",
        _YES4,
    ),
    _vdc_none("{'pred': 'yes', 'score': 4}\n{'pred': 'yes', 'score': 5}", "two scores"),
    _vdc_none(
        "Colour: {'pred': 'yes', 'score': 5}. Shape: {'pred': 'no', 'score': 1}.", "two aspects"
    ),
    _vdc_none("{'pred': 'yes', 'pred': 'no', 'score': 3}", "one key twice"),
    _vdc_none("{'pred': 'yes', 'score': 3, 'score': 5}", "one key twice"),
    _vdc_none("{'pred': ['yes', 'no'], 'score': 3}", "a list of both"),
    _vdc_none("{'pred': 'yes' or 'no', 'score': 3}", "the menu"),
    _vdc_none("{'pred': 'yes/no', 'score': 3}", "the menu in one word"),
    _vdc_none("{'pred': 'yes and no', 'score': 3}", "a hedge"),
    _vdc_none("Yes and no, 3", "a hedge without the dictionary"),
    _vdc_none("{'pred': 'partially', 'score': 3}", "off the menu"),
    _vdc_none("{'pred': 'yes', 'score': 3-4}", "a range"),
    _vdc_none("yes, 3-4", "a bare range"),
    _vdc_none("{'pred': 'yes', 'score': '3 to 4'}", "a range in words"),
    _vdc_none("{'pred': 'yes', 'score': 4,8}", "a decimal comma", ("yes", 4.8)),
    _vdc_none("pred: yes, score: 4,8", "a decimal comma outside the dictionary", ("yes", 4.8)),
    _vdc_none("no, -1", "below the scale"),
    _vdc_none("{'pred': 'no', 'score': -1}", "below the scale"),
    _vdc_none("{'pred': 'yes', 'score': 7}", "above the scale"),
    _vdc_none("pred: yes, score: 45", "above the scale"),
    _vdc_none("{'pred': 'yes', 'score': 5.1}", "just above the scale"),
    _vdc_none("no, .5", "a fraction without its zero", ("no", 0.5)),
    _vdc_none("pred: no, score: .5", "a fraction without its zero", ("no", 0.5)),
    _vdc_none("{'pred': 'yes', 'score': 80%}", "a percentage"),
    _vdc_none("{'pred': 'yes', 'score': 4/10}", "another scale"),
    _vdc_none("pred: no, score: 2 out of 10", "another scale in words"),
    _vdc_none("{'pred': 'yes', 'score': 4/5}", "a quotient, or a share of five", _YES4),
    _vdc_none("yes, 1/2", "a fraction"),
    _vdc_none("{'pred': 'yes', 'score': four}", "the number as a word", _YES4),
    _vdc_none("{'pred': 'yes', 'score': ~4}", "about", _YES4),
    _vdc_none("{'pred': 'yes', 'score': >3}", "more than"),
    _vdc_none("{'pred': 'yes', 'score': null}", "no score"),
    _vdc_none("{'pred': 'yes', 'score': True}", "a score that is no number"),
    _vdc_none("{'pred': 'yes', 'score': 1e999}", "infinite"),
    _vdc_none('{"pred": "yes", "score": NaN}', "no number"),
    _vdc_none("{'pred': 'yes', 'score': INTEGER}", "the form without a score"),
    _vdc_none("{'pred': 'yes'}", "no score"),
    _vdc_none("{'pred': 'yes', 'score': 4", "the closing brace is missing", _YES4),
    _vdc_none("{['yes', 5]}", "a set of a list", _YES5),
    _vdc_none("{'pred': 'ye\u017f', 'score': 4}", "a long s", _YES4),
    _vdc_none(
        "<reasoning>{'pred': 'yes', 'score': 5} is too kind.</reasoning>{'pred': 'no', 'score': 1}",
        "a pair in a block of reasoning",
        _NO1,
    ),
    _vdc_none(
        "<reasoning>Perhaps {'pred': 'yes', 'score': 5}.</reasoning>", "a guess in reasoning alone"
    ),
    _vdc_none("<think>Perhaps {'pred': 'yes', 'score': 5}.", "reasoning that never ends"),
    _vdc_none(
        "def evaluate(a, b):\n    if a == b:\n        return {'pred': 'yes', 'score': 5}\n    return {'pred': 'no', 'score': 0}\n\nassert evaluate('red', 'red') == {'pred': 'yes', 'score': 5}",
        "code with an assert (SmolLM)",
    ),
    _vdc_none(
        "{'pred': 'yes', 'score': 4}\n\nQuestion: What is on the table?\nCorrect Answer: a cup\nPredicted Answer: a dog\n{'pred': 'no', 'score': 0}",
        "rambles on with a question of its own",
        _YES4,
    ),
    _vdc_none("I'm sorry, but I can't judge this.", "a refusal"),
    _vdc_none("", "nothing"),
    _vdc_none("{" * 60, "braces alone"),
)

_vcb = partial(HardReply, "vidcapbench")
_vcb_none = partial(_none, "vidcapbench")

VIDCAPBENCH: Final[tuple[HardReply, ...]] = (
    _vcb(
        '**Analysis:**\n- Subject: the man, as in the correct answer.\n- Action: running, where the correct one is walking.\n\n**Result:**\n```json\n{"score": -1, "analysis": "The action contradicts."}\n```',
        "wrong",
        "analysis first, then fenced (Qwen)",
    ),
    _vcb(
        "Score: 1, the predicted answer mentions the correct answer. Score: 1, the predicted answer mentions the correct answer.",
        "partial",
        "restated (SmolLM)",
    ),
    _vcb(
        "score: 0\nanalysis: The prediction has 2 dogs where the answer has 1.",
        "neutral",
        "labelled lines with counts",
    ),
    _vcb("Result: {'score': 1}", "partial", "a label before"),
    _vcb_none("The predicted answer deserves 1 point.", "points", "partial"),
    _vcb_none("I'd rate it 2.", "no score named", "correct"),
    _vcb_none(
        '{"score": 2, "analysis": "Same."}\n\nQuestion: Who runs?\nCorrect Answer: a man\nPredicted Answer: a tree\nYour Result: {"score": 0, "analysis": "Not mentioned."}',
        "rambles on with a question of its own",
        "correct",
    ),
    _vcb('{"score": 2, "analysis": "It is the same."}', "correct", "as asked"),
    _vcb('{"score": 1, "analysis": "Less precise."}', "partial", "as asked"),
    _vcb('{"score": 0, "analysis": "Not mentioned."}', "neutral", "as asked"),
    _vcb('{"score": -1, "analysis": "Contradicts."}', "wrong", "as asked"),
    _vcb(
        '```json\n{\n    "score": 0,\n    "analysis": "Nothing is said."\n}\n```',
        "neutral",
        "fenced",
    ),
    _vcb("{'score': -1, 'analysis': 'It isn\\'t red.'}", "wrong", "Python with an escaped quote"),
    _vcb('{"analysis": "Half of it is there.", "score": 1}', "partial", "the other order"),
    _vcb(
        '{"score": -1, "analysis": "It says 2 dogs, not 1; score: 2 would be wrong."}',
        "wrong",
        "numbers in the analysis",
    ),
    _vcb(
        '{"score": 1, "analysis": "A result like {\\"score\\": 2} would be too kind."}',
        "partial",
        "an object in the analysis",
    ),
    _vcb('{"score": 0, "analysis": "The sign reads {EXIT}."}', "neutral", "braces in the analysis"),
    _vcb('{"score": 0, "analysis": "It ends with }."}', "neutral", "one brace in the analysis"),
    _vcb(
        '{"score": 1, "analysis": "It says "red" and not "crimson"."}',
        "partial",
        "quotation marks not escaped",
    ),
    _vcb('{"score": 2, "analysis": "Line one.\nLine two."}', "correct", "a line break in a string"),
    _vcb('{"result": {"score": 1, "analysis": "Imprecise."}}', "partial", "nested"),
    _vcb('[{"score": 1, "analysis": "Imprecise."}]', "partial", "a list of one"),
    _vcb('{"Score": 2, "Analysis": "Same."}', "correct", "keys in upper case"),
    _vcb('{"score": "-1", "analysis": "Opposite."}', "wrong", "the score as text"),
    _vcb('{"score": 2.0, "analysis": "Same."}', "correct", "a float"),
    _vcb('{"score": \u22121, "analysis": "Opposite."}', "wrong", "a typographic minus sign"),
    _vcb('{score: 2, analysis: "Same."}', "correct", "keys without quotation marks"),
    _vcb("{“score”: 1, “analysis”: “Imprecise.”}", "partial", "typographic quotation marks"),
    _vcb('{"score"：1，"analysis"："不够准确。"}', "partial", "full-width punctuation (Qwen)"),
    _vcb(
        '{"score": 1, "analysis": "预测答案提到了红色，但不完整。"}',
        "partial",
        "a Chinese analysis",
    ),
    _vcb('{"score": 1, "analysis": "Imprecise.",}', "partial", "a trailing comma"),
    _vcb('{"score": 1}', "partial", "no analysis"),
    _vcb(
        '{"score": 1, "analysis": "The predicted answer mentions the',
        "partial",
        "no end, but the field is whole",
    ),
    HardReply(
        "vidcapbench",
        '{"score": -1, "analysis": "The predicted answer says that',
        "wrong",
        "cut in the analysis",
        finish_reason="length",
    ),
    _vcb(
        'Here is my result:\n{"score": 0, "analysis": "Not mentioned."}\nLet me know!',
        "neutral",
        "a frame around it",
    ),
    _vcb(
        'Your Result: {"score": 2, "analysis": "Same."}',
        "correct",
        "the prompt's last words echoed",
    ),
    _vcb('{"score": 1, "analysis": "Imprecise."}\n\nFinal score: 1', "partial", "restated"),
    _vcb('{"score": 1, "analysis": "a"}\n{"score": 1, "analysis": "a"}', "partial", "restated"),
    _vcb(
        '<think>\nScore: 2? It names another colour.\n</think>\n{"score": -1, "analysis": "Another colour."}',
        "wrong",
        "reasoning with another score",
    ),
    _vcb("1", "partial", "the number alone"),
    _vcb("-1", "wrong", "the number alone"),
    _vcb("**2**", "correct", "the number in bold"),
    _vcb("Score: 1", "partial", "a label"),
    _vcb("**Score: 2**\n\nThe answers agree.", "correct", "a bold label"),
    _vcb("**Score:** -1\n**Analysis:** Another colour.", "wrong", "bold labels"),
    _vcb("Score：1。", "partial", "full-width punctuation"),
    _vcb("The score is 1.", "partial", "a sentence"),
    _vcb("The score is -1.", "wrong", "a sentence"),
    _vcb("I would give this a score of 1.", "partial", "a sentence"),
    _vcb("Therefore, the final score is **0**.", "neutral", "a sentence with bold"),
    _vcb(r"\boxed{1}", "partial", "boxed"),
    _vcb(r"The final score is $\boxed{-1}$.", "wrong", "boxed in mathematics"),
    _vcb("score = 0", "neutral", "an assignment"),
    _vcb('"score": 2, "analysis": "Same."', "correct", "no braces"),
    _vcb("<score>1</score><analysis>Imprecise.</analysis>", "partial", "tags"),
    _vcb("| score | analysis |\n|---|---|\n| 0 | Not mentioned. |", "neutral", "a table"),
    _vcb(
        "Score: 1, the predicted answer mentions the correct answer, but the information is not precise or complete.",
        "partial",
        "one line of the menu",
    ),
    _vcb(
        "1. The question asks for a colour.\n2. The prediction names none.\n\nScore: 0",
        "neutral",
        "numbered steps first",
    ),
    _vcb(
        '(1) No other subject is named. (2) The subject fits.\n{"score": 2, "analysis": "Same."}',
        "correct",
        "the requirements' numbers first",
    ),
    _vcb(
        "2 people are in both answers, but one is misnamed, so the score is 1.",
        "partial",
        "a count first",
    ),
    _vcb("Analysis: It names 2 of the 3 dogs.\nScore: 1", "partial", "counts in the analysis"),
    _vcb(
        '{\n  "score": -1,\n  "analysis": "The correct answer is 2; the prediction says 1."\n}<|eot_id|>',
        "wrong",
        "a control token behind",
    ),
    # No verdict, or two.
    _vcb_none("Score: 2 out of 10", "another scale"),
    _vcb_none("Score: 1/10", "another scale"),
    _vcb_none("Score: 2/2", "a share", "correct"),
    _vcb_none("Score: 1/2", "a half, or one of two", "partial"),
    _vcb_none("Score: 1-2", "a range"),
    _vcb_none("Score: 1 or 2", "a choice"),
    _vcb_none("The score is between 0 and 1.", "a range in words"),
    _vcb_none("Score: 1.5", "off the menu"),
    _vcb_none("Score: 0,5", "a decimal comma off the menu"),
    _vcb_none("Score: .5", "a fraction"),
    _vcb_none("Score: 50%", "a percentage"),
    _vcb_none("Score: 2%", "a percentage"),
    _vcb_none("Score: 3", "off the menu"),
    _vcb_none("Score: -2", "off the menu"),
    _vcb_none("Score: 12", "off the menu"),
    _vcb_none('{"score": 1.5, "analysis": "Between 1 and 2."}', "off the menu"),
    _vcb_none('{"score": 5, "analysis": "Perfect."}', "off the menu"),
    _vcb_none('{"score": 1-2, "analysis": "In between."}', "a range"),
    _vcb_none('{"score": "1 or 2", "analysis": "In between."}', "a choice"),
    _vcb_none('{"score": [1, 2], "analysis": "Both."}', "a list of two"),
    _vcb_none('{"score": null, "analysis": "Score: 1 would be fair."}', "no score"),
    _vcb_none('{"score": true, "analysis": "Same."}', "a truth value"),
    _vcb_none('{"score": score, "analysis": analysis}', "the form echoed"),
    _vcb_none('{"score": "correct", "analysis": "Same."}', "a word", "correct"),
    _vcb_none('{"score": "2 (correct)", "analysis": "Same."}', "a number with a word", "correct"),
    _vcb_none('{"score": "２", "analysis": "一致。"}', "a full-width digit", "correct"),
    _vcb_none('{"score": 1, "score": 2, "analysis": "Both."}', "one key twice"),
    _vcb_none('{"score": 2, "analysis": "a"}\n{"score": 1, "analysis": "b"}', "two objects"),
    _vcb_none(
        '{"score": 2, "analysis": "a"}\nOn reflection, the final score is 1.',
        "corrected",
        "partial",
    ),
    _vcb_none(
        '{"score": 1, "detail": {"score": 2}, "analysis": "a"}',
        "two scores in one object",
        "partial",
    ),
    _vcb_none("Score: 2? No, 1.", "corrected", "partial"),
    _vcb_none("Score: 1 -> 2", "corrected with an arrow", "correct"),
    _vcb_none("Score: 2 for the subject, Score: 0 for the colour", "two aspects"),
    _vcb_none("Score: 2 for the subject and 0 for the colour.", "two aspects"),
    _vcb_none("At first sight Score: 2, but the colour differs. Score: -1", "corrected", "wrong"),
    _vcb_none("The score is not 2.", "negated"),
    _vcb_none("It does not deserve a score of 2.", "negated"),
    _vcb_none("If it named the colour, the score would be 2.", "conditional"),
    _vcb_none("Score: - 1", "a minus sign set apart", "wrong"),
    _vcb_none("Score - 1", "a dash or a minus sign", "wrong", "partial"),
    _vcb_none("Score \u20131", "a dash or a minus sign", "wrong", "partial"),
    _vcb_none("Score: minus one", "words", "wrong"),
    _vcb_none("Score: two", "a word", "correct"),
    _vcb_none("The predicted answer is correct.", "no score", "correct"),
    _vcb_none(
        "- Score: 2, the predicted answer comprehensively and accurately reflects the content of the correct answer.\n- Score: 1, the predicted answer mentions the correct answer, but the information is not precise or complete.\n- Score: 0, the predicted answer does not mention the correct answer at all.",
        "the menu echoed",
    ),
    _vcb_none("Score: 2, 1, 0, or -1", "the menu in one line"),
    _vcb_none("I cannot evaluate this without seeing the video.", "a refusal"),
    _vcb_none("The predicted answer has 2 dogs.", "a count and no score"),
    _vcb_none("<think>Score: 2", "reasoning that never ends"),
    _vcb_none("score" + " " * 512, "blanks"),
    _vcb_none("{" * 500 + "}" * 500, "braces alone"),
    _vcb_none("", "nothing"),
)

_vcaps = partial(HardReply, "vcapsbench")
_vcaps_none = partial(_none, "vcapsbench")

VCAPSBENCH: Final[tuple[HardReply, ...]] = (
    _vcaps(
        "The caption is a description of a video. The question is about the video. The answer is yes.",
        "yes",
        "sentences first (SmolLM)",
    ),
    _vcaps(
        "**Answer**: No\n\n**Analysis**: the caption says that it is blue.", "no", "bold labels"
    ),
    _vcaps(
        "No@@@No, the caption says that the car is blue.", "no", "the label again in the analysis"
    ),
    _vcaps(
        "Unanswerable@@@The answer is not in the caption.",
        "unanswerable",
        "the word answer in the analysis",
    ),
    _vcaps("Yes, no doubt.", "yes", "a no that is none"),
    _vcaps_none(
        "Yes@@@The car is red.\n\nQuestion: Is the dog brown?\nNo@@@The dog is black.",
        "rambles on with a question of its own",
        "yes",
    ),
    _vcaps_none("No, yes is not what the caption says.", "two labels", "no"),
    _vcaps_none("The caption says yes.", "no answer of its own", "yes"),
    _vcaps("Yes@@@The caption says that the car is red.", "yes", "as asked"),
    _vcaps("No@@@The caption says that the car is blue.", "no", "as asked"),
    _vcaps("Unanswerable@@@The caption does not speak about the car.", "unanswerable", "as asked"),
    _vcaps("No\n@@@\nThe car is blue.", "no", "the mark on a line of its own"),
    _vcaps(
        "Unanswerable\n@@@ Nothing is said about it.", "unanswerable", "the mark on the next line"
    ),
    _vcaps("Yes @@@ The car is red.", "yes", "blanks around the mark"),
    _vcaps("**No**@@@The car is blue.", "no", "bold"),
    _vcaps("**Yes@@@The car is red.**", "yes", "all in bold"),
    _vcaps("```\nNo@@@The car is blue.\n```", "no", "fenced"),
    _vcaps("Answer: Yes@@@The car is red.", "yes", "a label before"),
    _vcaps("Answer: No\nAnalysis: The car is blue.", "no", "labels in place of the mark"),
    _vcaps(
        "**Answer:** Unanswerable\n**Analysis:** No car is named.", "unanswerable", "bold labels"
    ),
    _vcaps("answer@@@analysis\nNo@@@The car is blue.", "no", "the form's line before"),
    _vcaps(
        "No@@@The caption says yes to nothing of the kind.", "no", "the other label in the analysis"
    ),
    _vcaps(
        "Yes@@@No other car is named, so the answer is yes.",
        "yes",
        "the other label and the same one in the analysis",
    ),
    _vcaps(
        "Unanswerable@@@The caption neither says yes nor no.",
        "unanswerable",
        "all labels in the analysis",
    ),
    _vcaps("No@@@The caption has no car. No. None at all.", "no", "the same word in the analysis"),
    _vcaps("Yes", "yes", "the label alone"),
    _vcaps("no", "no", "the label alone"),
    _vcaps("UNANSWERABLE", "unanswerable", "the label alone"),
    _vcaps("Unanswerable.", "unanswerable", "the label alone with a point"),
    _vcaps("Yes.", "yes", "the label alone with a point"),
    _vcaps("(No)", "no", "in brackets"),
    _vcaps("'Yes'", "yes", "in quotation marks"),
    _vcaps("> No@@@The car is blue.", "no", "a quotation's mark"),
    _vcaps("No, the car is blue.", "no", "the label set off by a comma"),
    _vcaps("Yes, the caption says that the car is red.", "yes", "the label set off by a comma"),
    _vcaps("Yes - the car is red.", "yes", "the label set off by a dash"),
    _vcaps("No\u2014the car is blue.", "no", "the label set off by a long dash"),
    _vcaps(
        "Yes\n\nThe caption clearly says that the car is red.",
        "yes",
        "the label on a line of its own",
    ),
    _vcaps("The answer is no.", "no", "a sentence"),
    _vcaps("The answer is: **Unanswerable**.", "unanswerable", "a sentence with bold"),
    _vcaps("- The answer to the question is no.", "no", "a list's sentence (SmolLM)"),
    _vcaps("The answer to the question is yes.", "yes", "a sentence"),
    _vcaps("My final answer is Yes@@@The car is red.", "yes", "a sentence before the mark"),
    _vcaps('Based on the caption, the answer is "No".', "no", "a quoted label"),
    _vcaps("The caption mentions a red car, so the answer is yes.", "yes", "reason first"),
    _vcaps("The question is unanswerable.", "unanswerable", "said of the question"),
    _vcaps(
        "This question is unanswerable from the caption alone.",
        "unanswerable",
        "said of the question",
    ),
    _vcaps("No doubt about it, the answer is yes.", "yes", "begins with a no that is none"),
    _vcaps(
        "Not only is the car red, it is named; the answer is yes.",
        "yes",
        "begins with a word that begins with a label",
    ),
    _vcaps(
        "None of the cars is red, so the answer is no.",
        "no",
        "begins with a word that begins with a label",
    ),
    _vcaps(
        "Yesterday's scene aside, the answer is no.",
        "no",
        "begins with a word that begins with a label",
    ),
    _vcaps(r"\boxed{No}", "no", "boxed"),
    _vcaps(r"$\boxed{\text{Yes}}$", "yes", "boxed text"),
    _vcaps("<answer>No</answer>", "no", "a tag"),
    _vcaps(
        '{"answer": "No", "analysis": "Yes, there is a car, but it is blue."}',
        "no",
        "JSON in place of the form",
    ),
    _vcaps(
        "<think>Yes? The car is blue.</think>\nNo@@@The car is blue.",
        "no",
        "reasoning with another label",
    ),
    _vcaps("<think>\n\n</think>\n\nYes@@@The car is red.", "yes", "empty reasoning (Qwen)"),
    _vcaps("Yes@@@The car is red.\nYes@@@The car is red.", "yes", "restated"),
    _vcaps("No@@@The car is blue.\n\nFinal answer: No", "no", "restated"),
    _vcaps("Yes！@@@车是红色的。", "yes", "Chinese punctuation and analysis"),
    _vcaps("No。", "no", "a Chinese full stop"),
    _vcaps("Yes＠＠＠The car is red.", "yes", "full-width at signs"),
    _vcaps("Yes@@The car is red.", "yes", "two at signs"),
    _vcaps("No@@@@The car is blue.", "no", "four at signs"),
    _vcaps("No@@@", "no", "no analysis"),
    _vcaps("Sure!\n\nNo@@@The car is blue.", "no", "a greeting before"),
    _vcaps(
        "Question: Is the car red?\nAnswer: Yes@@@The car is red.", "yes", "the question echoed"
    ),
    _vcaps("Is the car red? No@@@The car is blue.", "no", "the question on the same line"),
    HardReply(
        "vcapsbench",
        "No@@@The caption says that the car",
        "no",
        "cut in the analysis",
        finish_reason="length",
    ),
    # No verdict, or two.
    _vcaps_none("No. Else the answer is yes.", "two labels", "no"),
    _vcaps_none("Yes@@@The car is red.\nNo@@@The car is blue.", "two answers"),
    _vcaps_none(
        "Yes@@@The car is red.\nWait, the car is blue.\nNo@@@The car is blue.", "corrected", "no"
    ),
    _vcaps_none("Yes or no@@@It depends.", "two labels before the mark"),
    _vcaps_none("Yes/No@@@It depends.", "two labels before the mark"),
    _vcaps_none("Yes and no.", "a hedge"),
    _vcaps_none("Yes, no, or unanswerable", "the menu"),
    _vcaps_none("Yes. No. Unanswerable.", "the menu"),
    _vcaps_none("Answer: Yes / No / Unanswerable", "the menu"),
    _vcaps_none("Yes -> No@@@The car is blue.", "corrected with an arrow", "no"),
    _vcaps_none("Yes? No.@@@The car is blue.", "corrected", "no"),
    _vcaps_none(
        "No, no answer to the question is possible.",
        "no label; it says that it cannot be answered",
        "unanswerable",
    ),
    _vcaps_none("No answer@@@The caption is silent.", "off the menu", "unanswerable"),
    _vcaps_none("No information is given.", "off the menu", "unanswerable"),
    _vcaps_none("No mention of a car@@@The caption is silent.", "off the menu", "unanswerable"),
    _vcaps_none("Not unanswerable@@@The caption says so.", "negated"),
    _vcaps_none("Not yes.", "negated"),
    _vcaps_none("The answer is not yes.", "negated"),
    _vcaps_none("The answer is not no.", "negated"),
    _vcaps_none("The answer isn't unanswerable.", "negated"),
    _vcaps_none("It would be wrong to say that the answer is yes.", "rejected"),
    _vcaps_none("If the car were red, the answer would be yes.", "conditional"),
    _vcaps_none("The answer is yes if the car is red.", "conditional"),
    _vcaps_none("The answer is yes or no.", "the menu"),
    _vcaps_none("The answer is either yes or unanswerable.", "two labels"),
    _vcaps_none("Answer@@@Analysis", "the form echoed"),
    _vcaps_none(
        "For example: Yes@@@The caption says that the car is red.\nNo@@@The car is blue.",
        "the example beside another answer",
        "no",
    ),
    _vcaps_none(
        "Give one of these three answers:\n- Yes: the caption says that the answer to the question is yes.\n- No: the caption says that the answer is no.\n- Unanswerable: the caption does not speak about what is asked.",
        "the menu echoed",
    ),
    _vcaps_none("Maybe@@@The caption is vague.", "off the menu"),
    _vcaps_none("Probably yes@@@The caption is vague.", "a hedge", "yes"),
    _vcaps_none("Cannot be determined@@@The caption is silent.", "off the menu", "unanswerable"),
    _vcaps_none("N/A@@@The caption is silent.", "off the menu", "unanswerable"),
    _vcaps_none("True@@@The car is red.", "off the menu", "yes"),
    _vcaps_none("是@@@车是红色的。", "a label in Chinese", "yes"),
    _vcaps_none("不是@@@车是蓝色的。", "a label in Chinese", "no"),
    _vcaps_none("Partially yes, partially no@@@One car of two is red.", "a hedge"),
    _vcaps_none("@@@The answer is in the caption.", "nothing before the mark"),
    _vcaps_none("The car is red@@@Yes", "the parts exchanged", "yes"),
    _vcaps_none('{"answer": ["yes", "no"]}', "a list of both"),
    _vcaps_none('{"answer": "yes", "final_answer": "no"}', "two fields"),
    _vcaps_none("- Question 1: Yes\n- Question 2: No", "two questions"),
    _vcaps_none("I'm sorry, I can't see the video.", "a refusal"),
    _vcaps_none("ye\u017f@@@The car is red.", "a long s", "yes"),
    _vcaps_none("Yes" * 40, "the label without end", "yes"),
    _vcaps_none("<think>Yes@@@", "reasoning that never ends"),
    _vcaps_none("", "nothing"),
)

_quiz = partial(HardReply, "capquiz")
_quiz_none = partial(_none, "capquiz")

CAPQUIZ: Final[tuple[HardReply, ...]] = (
    _quiz(
        "Looking at the options:\n- A. A red car: the caption says blue.\n- B. A blue car: it fits.\n\nAnswer: B",
        "B",
        "options weighed first",
    ),
    _quiz(
        "Step 1: C is a bicycle, which is not named.\nStep 2: the car is blue.\nSo the answer is **B**.",
        "B",
        "steps first",
    ),
    _quiz("The answer is B. A blue car is what the caption describes.", "B", "an article behind"),
    _quiz_none("C. A bicycle, not A. A red car", "two options", "C"),
    _quiz_none("Answer is D. F is for when nothing is said.", "two letters", "D"),
    _quiz("B", "B", "the letter alone"),
    _quiz("A", "A", "the letter alone"),
    _quiz("F", "F", "the letter alone"),
    _quiz("b", "B", "a small letter"),
    _quiz("B.", "B", "with a point"),
    _quiz("(B)", "B", "in brackets"),
    _quiz("[C]", "C", "in square brackets"),
    _quiz("**D**", "D", "bold"),
    _quiz("`E`", "E", "as code"),
    _quiz("```\nB\n```", "B", "fenced"),
    _quiz("'B'", "B", "in quotation marks"),
    _quiz("B) A blue car", "B", "with its option"),
    _quiz("B. A blue car", "B", "with its option"),
    _quiz("B: A blue car", "B", "with its option"),
    _quiz("D - Two dogs", "D", "with its option and a dash"),
    _quiz("A. A red car", "A", "with its option"),
    _quiz("E. A red car with a white stripe", "E", "with its option, which begins like another"),
    _quiz("F. Cannot be determined.", "F", "with its option"),
    _quiz("**B. A blue car**", "B", "bold with its option"),
    _quiz("Option B", "B", "a label"),
    _quiz("Option B: A blue car", "B", "a label with its option"),
    _quiz("Letter: D", "D", "a label"),
    _quiz("Answer: B", "B", "a label"),
    _quiz("Answer：B", "B", "a full-width colon"),
    _quiz("Answer: **B. A blue car**", "B", "a label with bold"),
    _quiz("Final answer: (E)", "E", "a label"),
    _quiz("Choice: C", "C", "a label"),
    _quiz("The answer is B.", "B", "a sentence"),
    _quiz("The correct answer is (B).", "B", "a sentence"),
    _quiz("The correct option is **D. Two dogs**.", "D", "a sentence"),
    _quiz("The correct letter is C.", "C", "a sentence"),
    _quiz("The answer is B: A blue car.", "B", "a sentence with its option"),
    _quiz("The answer is A.", "A", "the letter that is an article, too"),
    _quiz("The best answer is C because A and B are cars.", "C", "others in the reason"),
    _quiz("Option B is correct.", "B", "said of the option"),
    _quiz("B is the correct answer.", "B", "the letter first"),
    _quiz("I choose D.", "D", "a sentence"),
    _quiz("I would select option D.", "D", "a sentence"),
    _quiz("D, as the caption mentions two dogs.", "D", "a reason behind a comma"),
    _quiz("B because the caption says that it is blue.", "B", "a reason behind the letter"),
    _quiz("Therefore, C.", "C", "a conclusion"),
    _quiz("The caption mentions a bicycle.\n\nC", "C", "the letter last"),
    _quiz("B\n\nThe caption mentions a blue car.", "B", "the letter first"),
    _quiz(
        "B\n\nExplanation: A is wrong since the car is not red, and C is no car.",
        "B",
        "others in the explanation",
    ),
    _quiz(
        "Because the caption mentions a bicycle, the answer is C.",
        "C",
        "begins with another letter",
    ),
    _quiz("A bicycle is named in the caption, so the answer is C.", "C", "begins with an article"),
    _quiz("Every dog is seen twice. Answer: D", "D", "begins with another letter"),
    _quiz(
        "Option A is wrong, since the car is not red. Option B is correct.",
        "B",
        "one rejected, one chosen",
    ),
    _quiz("A is incorrect; the correct answer is B.", "B", "one rejected, one chosen"),
    _quiz("Answer the question with A, B, C, D, E, or F.\nD", "D", "the prompt echoed before"),
    _quiz(
        "A. A red car\nB. A blue car\nC. A bicycle\nD. Two dogs\nE. A red car with a white stripe\nF. Cannot be determined\n\nAnswer: D",
        "D",
        "the menu echoed before",
    ),
    _quiz("A blue car", "B", "the option's text alone"),
    _quiz("A red car", "A", "the option's text alone, the beginning of another"),
    _quiz(
        "A red car with a white stripe", "E", "the option's text alone, which begins like another"
    ),
    _quiz("Two dogs.", "D", "the option's text alone"),
    _quiz("Cannot be determined", "F", "the option's text alone"),
    _quiz(r"\boxed{C}", "C", "boxed"),
    _quiz(r"$\boxed{\text{C}}$", "C", "boxed text"),
    _quiz(r"The final answer is: $\boxed{D}$", "D", "boxed in a sentence"),
    _quiz("<answer>C</answer>", "C", "a tag"),
    _quiz('{"answer": "B"}', "B", "JSON"),
    _quiz("<think>A or B? It is blue.</think>\n\nB", "B", "reasoning with others"),
    _quiz(
        "<think>\nThe answer is A? No.\n</think>\nThe answer is E.", "E", "reasoning with another"
    ),
    _quiz("B\nB", "B", "restated"),
    _quiz("The answer is B.\n\nFinal answer: B", "B", "restated"),
    _quiz("B. A blue car\n\nThe answer is B.", "B", "restated"),
    _quiz("B<|eot_id|>", "B", "a control token behind"),
    # No verdict, or two.
    _quiz_none("B or C", "two letters"),
    _quiz_none("B and C", "two letters"),
    _quiz_none("A, B", "two letters"),
    _quiz_none("A/B", "two letters"),
    _quiz_none("AB", "two letters"),
    _quiz_none("B C", "two letters"),
    _quiz_none("Both A and D are right.", "two letters"),
    _quiz_none("The answer is B or C.", "two letters"),
    _quiz_none("The answer is B? No, C.", "corrected", "C"),
    _quiz_none("The answer is B. Wait, the answer is C.", "corrected", "C"),
    _quiz_none("B\n\nThe answer is C.", "two letters"),
    _quiz_none("Answer: B\nAnswer: C", "two letters"),
    _quiz_none("B\nC", "two letters"),
    _quiz_none("B -> C", "corrected with an arrow", "C"),
    _quiz_none("B (though it could be C)", "a hedge", "B"),
    _quiz_none("The answer is most likely B, but F cannot be excluded.", "a hedge", "B"),
    _quiz_none(r"\boxed{B} \boxed{C}", "two boxes"),
    _quiz_none('{"answer": ["B", "C"]}', "a list of two"),
    _quiz_none("B. Two dogs", "the letter of one option with another's text"),
    _quiz_none("B) A bicycle", "the letter of one option with another's text"),
    _quiz_none("F. A red car", "the letter of one option with another's text"),
    _quiz_none("The answer is B: Two dogs.", "the letter of one option with another's text"),
    _quiz_none("G", "off the menu"),
    _quiz_none("The answer is G.", "off the menu"),
    _quiz_none("None of the above", "off the menu"),
    _quiz_none("A cat", "an article and no letter"),
    _quiz_none("A bike is seen.", "an article and no letter", "C"),
    _quiz_none("The answer is a bicycle.", "the option's text in a sentence", "C"),
    _quiz_none("The answer is a dog.", "an article and no letter"),
    _quiz_none("I cannot determine it.", "no letter", "F"),
    _quiz_none("I'm sorry, but I can't help with that.", "a refusal"),
    _quiz_none("As an AI, I cannot see the video.", "a refusal"),
    _quiz_none("Not B", "negated"),
    _quiz_none("The answer is not B.", "negated"),
    _quiz_none("The answer isn't B.", "negated"),
    _quiz_none("B is wrong.", "negated"),
    _quiz_none("Option B is incorrect.", "negated"),
    _quiz_none("Anything but C", "negated"),
    _quiz_none("If the car were blue, the answer would be B.", "conditional"),
    _quiz_none("It would be wrong to say that the answer is B.", "rejected"),
    _quiz_none("The answer is A, B, C, D, E, or F.", "the menu"),
    _quiz_none("Answer the question with A, B, C, D, E, or F.", "the prompt echoed"),
    _quiz_none("A\nB\nC\nD\nE\nF", "the menu"),
    _quiz_none(
        "A. A red car\nB. A blue car\nC. A bicycle\nD. Two dogs\nE. A red car with a white stripe\nF. Cannot be determined",
        "the menu echoed",
    ),
    _quiz_none("The answer is 2.", "a number", "B"),
    _quiz_none("Option 2", "a number", "B"),
    _quiz_none("Ｂ", "a full-width letter", "B"),
    _quiz_none("答案是B。", "a Chinese sentence", "B"),
    _quiz_none("C++", "no letter of the menu"),
    _quiz_none("B-", "a grade", "B"),
    _quiz_none("BBBBBB", "one letter again and again", "B"),
    _quiz_none("D" + "." * 200 + "C", "two letters far apart"),
    _quiz_none("<think>The answer is B.", "reasoning that never ends"),
    _quiz_none("", "nothing"),
)

_one = partial(HardReply, "gveval_overall")
_one_none = partial(_none, "gveval_overall")

GVEVAL_OVERALL: Final[tuple[HardReply, ...]] = (
    _one(
        "## Evaluation\n1. **Accuracy**: good.\n2. **Completeness**: it misses 1 of 2 events.\n\nThe final score is **$65$**.",
        (65.0,),
        "headings first (GPT-4o)",
    ),
    _one("The final score is $$65$$.", (65.0,), "doubled markers"),
    _one(r"The final score is \(65\).", (65.0,), "LaTeX's other markers"),
    _one("Final Score: $65$ / $100$", (65.0,), "both numbers in markers"),
    _one("30 + 35 = 65. The final score is $65$.", (65.0,), "a sum first"),
    _one_none("I would rate this caption a 65.", "no final score named", (65.0,)),
    _one("The caption is right but short. The final score is $85$.", (85.0,), "as asked"),
    _one(
        "It misses 2 of 3 dogs and all 4 cats. The final score is $40$.",
        (40.0,),
        "counts in the reason",
    ),
    _one("The final score is $0$.", (0.0,), "the lowest"),
    _one("The final score is $100$.", (100.0,), "the highest"),
    _one("$85$", (85.0,), "the marked number alone"),
    _one("85", (85.0,), "the number alone"),
    _one("**The final score is $85$.**", (85.0,), "bold"),
    _one("The final score is **$85$**.", (85.0,), "bold around the markers"),
    _one("The final score is $**85**$.", (85.0,), "bold within the markers"),
    _one("The final score is $ 85 $.", (85.0,), "blanks within the markers"),
    _one(r"The final score is \$85\$.", (85.0,), "escaped markers"),
    _one("The final score is $85.", (85.0,), "one marker"),
    _one("The final score is 85.", (85.0,), "no markers"),
    _one("The final score is 59", (59.0,), "no markers and no point"),
    _one("Final score: 59", (59.0,), "a label"),
    _one("Final Score: $59$", (59.0,), "a label with markers"),
    _one("### Final Score: 59", (59.0,), "a heading"),
    _one("Overall score: $85$", (85.0,), "another word"),
    _one("Score: 85/100", (85.0,), "out of the scale's own hundred"),
    _one("The final score is $85$/100.", (85.0,), "out of the scale's own hundred"),
    _one("The final score is $85/100$.", (85.0,), "out of the scale's own hundred"),
    _one("The final score is $85$ out of 100.", (85.0,), "out of the scale's own hundred"),
    _one("The final score is $85$ out of $100$.", (85.0,), "both numbers in markers"),
    _one("The final score is 85 out of 100.", (85.0,), "no markers"),
    _one("The final score is ${85}$.", (85.0,), "the slot's braces"),
    _one("The final score is ${{85}}$.", (85.0,), "the slot's braces"),
    _one(r"The final score is $\boxed{85}$.", (85.0,), "boxed"),
    _one(r"The final score is \boxed{85}.", (85.0,), "boxed without markers"),
    _one(r"The final score is $\mathbf{85}$.", (85.0,), "bold in LaTeX"),
    _one(r"The final score is $\text{85}$.", (85.0,), "text in LaTeX"),
    _one("The final score is $85.$", (85.0,), "the point within the markers"),
    _one("The final score is $85.5$.", (85.5,), "a decimal"),
    _one("The final score is 85.5.", (85.5,), "a decimal without markers"),
    _one("The final score is $85$.\n\nThe final score is $85$.", (85.0,), "restated"),
    _one("I give it 85. The final score is $85$.", (85.0,), "restated"),
    _one("The sign says that it costs $5. The final score is $72$.", (72.0,), "a price"),
    _one(
        "The price rises from $5 to $10 in the clip. The final score is $72$.",
        (72.0,),
        "two prices",
    ),
    _one(
        "Accuracy: $80$. Relevance: $70$. The final score is $75$.",
        (75.0,),
        "scores of aspects before",
    ),
    _one("On a scale from 0 to 100, the final score is $75$.", (75.0,), "the scale named"),
    _one(
        "<think>Perhaps $90$? It misses the dog.</think>The final score is $70$.",
        (70.0,),
        "reasoning with another",
    ),
    _one("The final score is $85$。", (85.0,), "a Chinese full stop"),
    _one("最终得分是 $85$。", (85.0,), "a Chinese sentence with markers"),
    # No verdict, or two.
    _one_none("The final score is $185$.", "above the scale"),
    _one_none("The final score is $-5$.", "below the scale"),
    _one_none("The final score is $100.5$.", "above the scale"),
    _one_none("The final score is $80-85$.", "a range"),
    _one_none("The final score is $80$-$85$.", "a range of markers"),
    _one_none("The final score is $80$ to $85$.", "a range in words"),
    _one_none("The final score is between 70 and 80.", "a range in words"),
    _one_none("The final score is $80$ or $85$.", "a choice"),
    _one_none("The final score is $8$/10.", "another scale"),
    _one_none("$8$/10", "another scale"),
    _one_none("8/10", "another scale"),
    _one_none("The final score is $8.5$ out of 10.", "another scale"),
    _one_none("The final score is $4$ out of $5$.", "another scale"),
    _one_none("The final score is $170/200$.", "another scale"),
    _one_none(r"The final score is $\frac{4}{5}$.", "a fraction"),
    _one_none("The final score is $85,5$.", "a decimal comma", (85.5,)),
    _one_none("The final score is $.5$.", "a fraction without its zero", (0.5,)),
    _one_none("The final score is ${{score}}$.", "the form echoed"),
    _one_none(
        "The final score is $85$. Correction: the final score is $70$.", "corrected", (70.0,)
    ),
    _one_none("The final score is $85$ -> $70$.", "corrected with an arrow", (70.0,)),
    _one_none("The final score is not $85$.", "negated"),
    _one_none("The final score is at least $60$.", "a bound"),
    _one_none("The final score is higher than 85.", "a bound"),
    _one_none("If it named the dog, the final score would be $90$.", "conditional"),
    _one_none("The final score is eighty-five.", "words", (85.0,)),
    _one_none("The final score is $８５$.", "full-width digits", (85.0,)),
    _one_none("The final score is $1e2$.", "scientific", (100.0,)),
    _one_none("The clip shows a price of $5.", "a price and no score"),
    _one_none("I'm sorry, I can't rate captions of real people.", "a refusal"),
    _one_none("$" + r"\[" * 28, "markers without a number"),
    _one_none("", "nothing"),
)

_four = partial(HardReply, "gveval_accr")
_four_none = partial(_none, "gveval_accr")
_ALL: Final = (85.0, 70.0, 90.0, 95.0)

GVEVAL_ACCR: Final[tuple[HardReply, ...]] = (
    _four(
        "### Accuracy\nIt is right. The Accuracy score is α85α.\n\n### Completeness\nIt misses 2 dogs. The Completeness score is β70β.\n\n### Conciseness\nShort. The Conciseness score is ψ90ψ.\n\n### Relevance\nThe Relevance score is δ95δ.",
        _ALL,
        "headings (GPT-4o)",
    ),
    _four(
        "The accuracy score is **α85α**, completeness is **β70β**, conciseness is **ψ90ψ** and relevance is **δ95δ**.",
        _ALL,
        "one sentence with bold",
    ),
    _four(
        "Accuracy: 85%\nCompleteness: 70%\nConciseness: 90%\nRelevance: 95%",
        _ALL,
        "percent of the scale's hundred",
    ),
    _four(
        "It is right. The Accuracy score is α85α. It misses 2 dogs. The Completeness score is β70β. Short. The Conciseness score is ψ90ψ. To the point. The Relevance score is δ95δ.",
        _ALL,
        "as asked",
    ),
    _four(
        "The Accuracy score is α85α, the Completeness score is β70β, the Conciseness score is ψ90ψ, and the Relevance score is δ95δ.",
        _ALL,
        "one sentence",
    ),
    _four("α85α β70β ψ90ψ δ95δ", _ALL, "markers alone"),
    _four(
        "- **Accuracy**: α85α\n- **Completeness**: β70β\n- **Conciseness**: ψ90ψ\n- **Relevance**: δ95δ",
        _ALL,
        "a list",
    ),
    _four("Accuracy: 85\nCompleteness: 70\nConciseness: 90\nRelevance: 95", _ALL, "no markers"),
    _four(
        "The Accuracy score is 85. The Completeness score is 70. The Conciseness score is 90. The Relevance score is 95.",
        _ALL,
        "sentences without markers",
    ),
    _four(
        "The Accuracy score is 85/100. The Completeness score is 70/100. The Conciseness score is 90/100. The Relevance score is 95/100.",
        _ALL,
        "out of the scale's own hundred",
    ),
    _four(
        "| Dimension | Score |\n|---|---|\n| Accuracy | α85α |\n| Completeness | β70β |\n| Conciseness | ψ90ψ |\n| Relevance | δ95δ |",
        _ALL,
        "a table",
    ),
    _four(
        "| Accuracy | 85 |\n| Completeness | 70 |\n| Conciseness | 90 |\n| Relevance | 95 |",
        _ALL,
        "a table without markers",
    ),
    _four(
        r"The Accuracy score is $\alpha 85 \alpha$. The Completeness score is $\beta 70 \beta$. The Conciseness score is $\psi 90 \psi$. The Relevance score is $\delta 95 \delta$.",
        _ALL,
        "LaTeX",
    ),
    _four(
        r"The Accuracy score is \alpha85\alpha. The Completeness score is \beta70\beta. The Conciseness score is \psi90\psi. The Relevance score is \delta95\delta.",
        _ALL,
        "LaTeX without mathematics",
    ),
    _four(
        "The Accuracy score is α{85}α. The Completeness score is β{70}β. The Conciseness score is ψ{90}ψ. The Relevance score is δ{95}δ.",
        _ALL,
        "the slots' braces",
    ),
    _four(
        "The Accuracy score is α{{85}}α. The Completeness score is β{{70}}β. The Conciseness score is ψ{{90}}ψ. The Relevance score is δ{{95}}δ.",
        _ALL,
        "the slots' braces",
    ),
    _four(
        "The Relevance score is δ95δ. The Conciseness score is ψ90ψ. The Completeness score is β70β. The Accuracy score is α85α.",
        _ALL,
        "another order",
    ),
    _four(
        "The Accuracy score is α85α. The Completeness score is ß70ß. The Conciseness score is Ψ90Ψ. The Relevance score is Δ95Δ.",
        _ALL,
        "look-alike markers",
    ),
    _four(
        "**Accuracy score: α85α**\n**Completeness score: β70β**\n**Conciseness score: ψ90ψ**\n**Relevance score: δ95δ**",
        _ALL,
        "bold lines",
    ),
    _four('{"accuracy": 85, "completeness": 70, "conciseness": 90, "relevance": 95}', _ALL, "JSON"),
    _four(
        "The Accuracy score is α85α. The Completeness score is β70β. The Conciseness score is ψ90ψ. The Relevance score is δ95δ.\n\nIn short: α85α, β70β, ψ90ψ, δ95δ.",
        _ALL,
        "restated",
    ),
    _four(
        "<think>Accuracy α60α?</think>The Accuracy score is α85α. The Completeness score is β70β. The Conciseness score is ψ90ψ. The Relevance score is δ95δ.",
        _ALL,
        "reasoning with another",
    ),
    _four(
        "The Accuracy score is α0α. The Completeness score is β0β. The Conciseness score is ψ100ψ. The Relevance score is δ0δ.",
        (0.0, 0.0, 100.0, 0.0),
        "the ends of the scale",
    ),
    _four(
        "2 dogs, 1 cat.\n1. Accuracy: α85α\n2. Completeness: β70β\n3. Conciseness: ψ90ψ\n4. Relevance: δ95δ",
        _ALL,
        "a numbered list",
    ),
    _four(
        "The Accuracy score is α85α。The Completeness score is β70β。The Conciseness score is ψ90ψ。The Relevance score is δ95δ。",
        _ALL,
        "Chinese full stops",
    ),
    _four(
        "The Accuracy score is α85.5α. The Completeness score is β70β. The Conciseness score is ψ90ψ. The Relevance score is δ95δ.",
        (85.5, 70.0, 90.0, 95.0),
        "a decimal",
    ),
    _four(
        "Accuracy (α): 85\nCompleteness (β): 70\nConciseness (ψ): 90\nRelevance (δ): 95",
        _ALL,
        "the marker in brackets",
    ),
    # No verdict, or two.
    _four_none(
        "The Accuracy score is β85β. The Completeness score is α70α. The Conciseness score is ψ90ψ. The Relevance score is δ95δ.",
        "markers exchanged",
        _ALL,
    ),
    _four_none(
        "The Accuracy score is α85α. The Completeness score is ψ70ψ. The Conciseness score is β90β. The Relevance score is δ95δ.",
        "markers exchanged",
        _ALL,
    ),
    _four_none(
        "The Accuracy score is α85β. The Completeness score is β70β. The Conciseness score is ψ90ψ. The Relevance score is δ95δ.",
        "two markers that differ",
        _ALL,
    ),
    _four_none(
        "The Accuracy score is α85α. The Completeness score is β70β. The Conciseness score is ψ90ψ.",
        "one is missing",
    ),
    _four_none("The Accuracy score is α85α.", "three are missing"),
    _four_none(
        "The Accuracy score is α85α. The Completeness score is β170β. The Conciseness score is ψ90ψ. The Relevance score is δ95δ.",
        "one above the scale",
    ),
    _four_none(
        "The Accuracy score is α-5α. The Completeness score is β70β. The Conciseness score is ψ90ψ. The Relevance score is δ95δ.",
        "one below the scale",
    ),
    _four_none(
        "The Accuracy score is α80-90α. The Completeness score is β70β. The Conciseness score is ψ90ψ. The Relevance score is δ95δ.",
        "one range",
    ),
    _four_none(
        "The Accuracy score is α85,5α. The Completeness score is β70β. The Conciseness score is ψ90ψ. The Relevance score is δ95δ.",
        "one decimal comma",
        (85.5, 70.0, 90.0, 95.0),
    ),
    _four_none(
        "The Accuracy score is α85α. The Completeness score is β70β. The Conciseness score is ψ90ψ. The Relevance score is δ95δ. On reflection, the Accuracy score is α60α.",
        "one corrected",
        (60.0, 70.0, 90.0, 95.0),
    ),
    _four_none(
        "The Accuracy score is α8α/10. The Completeness score is β7β/10. The Conciseness score is ψ9ψ/10. The Relevance score is δ9δ/10.",
        "another scale",
    ),
    _four_none(
        "Accuracy: 8/10\nCompleteness: 7/10\nConciseness: 9/10\nRelevance: 9/10", "another scale"
    ),
    _four_none(
        "The Accuracy score is α{{accuracy_score}}α. The Completeness score is β{{completeness_score}}β. The Conciseness score is ψ{{conciseness_score}}ψ. The Relevance score is δ{{relevance_score}}δ.",
        "the form echoed",
    ),
    _four_none(
        "Accuracy and completeness are both 80; conciseness and relevance are 90.",
        "two in one number",
        (80.0, 80.0, 90.0, 90.0),
    ),
    _four_none("All four scores are 80.", "four in one number", (80.0, 80.0, 80.0, 80.0)),
    _four_none(
        "The Accuracy score is not α85α. The Completeness score is β70β. The Conciseness score is ψ90ψ. The Relevance score is δ95δ.",
        "one negated",
    ),
    _four_none(
        "The Accuracy score is at least α85α. The Completeness score is β70β. The Conciseness score is ψ90ψ. The Relevance score is δ95δ.",
        "one is a bound",
    ),
    _four_none("The final score is $85$.", "the other prompt's form"),
    _four_none("Accuracy: high\nCompleteness: low\nConciseness: high\nRelevance: high", "words"),
    _four_none("I'm sorry, I can't help with that.", "a refusal"),
    _four_none("α" * 200, "markers alone"),
    _four_none("", "nothing"),
)

HARD_REPLIES: Final = VDC + VIDCAPBENCH + VCAPSBENCH + CAPQUIZ + GVEVAL_OVERALL + GVEVAL_ACCR
