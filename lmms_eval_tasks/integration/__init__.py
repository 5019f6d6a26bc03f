"""The places where lmms-eval finds this package, and where its functions are wrapped."""
