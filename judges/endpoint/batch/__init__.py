"""Asking through a provider's Batch API."""
