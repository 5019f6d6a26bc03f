"""Parts of ``caption_openai``: what an endpoint is shown and asked, and how it is reached."""
