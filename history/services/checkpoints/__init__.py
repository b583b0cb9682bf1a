"""The past of a cluster: its rows are kept from time to time, and read again in place of the present ones."""
