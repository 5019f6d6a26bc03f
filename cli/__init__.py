"""The command line ``lmms-eval-captions``."""
