"""What pages have in common that are one file of HTML and load nothing from anywhere."""
