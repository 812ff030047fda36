"""``tidewise doctor``: whether Tidewise will work here, a finding for each part, with what to do."""
