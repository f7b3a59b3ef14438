"""A boost: settings that finish one kind of background work sooner, and that go by themselves when it is done.

`state_machine.decide` says what is next; the automatic mode's executor carries it out, under the same lock and journal.
"""
