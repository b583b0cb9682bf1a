"""Objects of other schedulers as objects of ours, each with a report of the fields that change or are lost."""
