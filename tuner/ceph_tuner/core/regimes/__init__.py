"""What a cluster does, told from its samples: idle, busy, recovering, backfilling, scrub late, trimming, and mixtures.

Marker          one of these: a metric, with the bounds at which it begins and ends
PolicyMarker    a policy of the objectives' calendar, which holds or does not
RegimeBounds    the markers of a cluster, which an operator can see and change (`bounds.py`)
RegimeState     the regime that holds, since when and by what; `tell` takes it on by a sample (`telling.py`)
"""
