"""Checkpoints of transformers, for ``caption_hf`` and ``caption_vllm``: opened and asked."""
