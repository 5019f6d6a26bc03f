"""The subcommand ``agree``: the same captions judged by several judges."""
