"""The pictures and films of the local service: a galloping horse, drawn for each task.

From the bottom up: `gallop` says where the joints are at each moment of a stride, `horse` clothes
them, `photograph` sets the horse before a ruled wall with one of the `backdrops`, and `card` mounts
photographs between a heading and a `caption`. `image` and `video` make files of that, toned like
old prints in the `look` of their family; films may have a `soundtrack`. `dimensions` reads from a
request how large and how long they are.
"""
