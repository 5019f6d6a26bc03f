"""MSVD-Eval: G-VEval scores of video captions."""
