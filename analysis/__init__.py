"""What finished runs say: compare, agree, stability, labels, report."""
