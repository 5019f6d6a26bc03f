"""``judge verify``: whether an endpoint behaves like the judge that it claims to be."""
