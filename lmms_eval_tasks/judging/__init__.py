"""From a caption to its record: what is asked, what it may cost, what it says."""
