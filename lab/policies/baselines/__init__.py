"""Systems that the papers compare with: static, reactive and rule-based ones."""
