"""``label`` makes a page on which people grade, ``labels`` reads what they said."""
