"""The pictures and films of the local service: a galloping horse, drawn for each task.

From the bottom up: `horse` reads its outlines at each moment of a stride from `horse.svg`,
`photograph` sets the horse before a ruled wall with one of the `backdrops`, and `card` mounts
photographs between a heading and a `caption`. `image` and `video` make files of that, toned like
old prints in the `look` of their family; films may have a `soundtrack`. `dimensions` reads from a
request how large and how long they are.
"""
