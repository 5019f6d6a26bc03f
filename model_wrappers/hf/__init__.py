"""Parts of ``caption_hf``: a transformers checkpoint loaded, asked, and generating."""
