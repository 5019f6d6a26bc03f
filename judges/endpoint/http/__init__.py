"""What goes over the wire, and how."""
