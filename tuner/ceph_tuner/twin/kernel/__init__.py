"""The twin's kernel: OSDs around Ceph's queue, event by event, as numba or plain Python runs them.

layout, records, osd_records, state
                            what it works on
dmclock                     Ceph's queue
events                      the event heap, messages, clients' turns; random numbers; items and operations
drive, bluestore            budgets and reads; the throttle
degraded                    clients' operations on objects that lack a copy
recovery, scrub, snaptrim, deletion, background
                            work besides clients', and where its items go on
clients                     operations issued and answered
threads, commits            items queued, taken and done with; transactions made durable
loop                        `run`, which Python calls
"""
