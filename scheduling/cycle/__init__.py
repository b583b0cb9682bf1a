"""One cycle: nominate, order, preempt, admit."""
