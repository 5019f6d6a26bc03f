"""VCapsBench: fine-grained video caption quality."""
