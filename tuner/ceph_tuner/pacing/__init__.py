"""Work on a cluster at its clients' pace: what deep scrubs that are asked for and data that is moved have in common.

    watch = ClientWatch(cluster, wanted, baseline, window_s, osds)
    watch.begin(tell)             # a window before anything is done: what relative bounds refer to
    watch.follow()                # what is wanted now: another policy of the calendar, or what was set meanwhile
    watch.judge(since)            # the newest window since the last change, held against the objectives
    watch.reason()                # why nothing may be begun now; empty where something may

`objectives` has the functions over values. What paces its own work by them decides alone what a step is.
"""
