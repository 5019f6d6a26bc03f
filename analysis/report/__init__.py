"""``report``: one page of HTML that people look at runs with and pass around."""
