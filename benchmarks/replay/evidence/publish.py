"""x"""
def publish(*a): return []
