"""How lmms-eval finds this package, and where its functions are wrapped."""
