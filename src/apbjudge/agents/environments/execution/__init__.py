"""Tasks that are carried out for real: do better plans succeed?"""
