"""Verification of a judge: is the endpoint the judge that it claims to be?"""
