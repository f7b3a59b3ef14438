"""Profiles as data: the built-in ones of every release. `catalogue.py` finds and reads them."""
