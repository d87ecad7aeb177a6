"""Purchases: what one POST that costs money may become, and what follows from it. Pure.

**A purchase is one POST.** It begins as *armed*, in a durable record, before the first byte of its
request is handed to the network. Nothing ever makes a purchase armed that exists: a retry after a
429 is another purchase. A random *key*, drawn by whoever will send it, is its only name. So an
outcome names its POST for ever. Whether it is recorded at once, an hour late, twice, by another
thread, or in a store that was restored from a backup meanwhile: it is true of that POST, and can
reach no other one.

    (nothing) --> armed --> accepted       the service has charged for it, or may still do so
                    |'----> released       it certainly did nothing
                    '-----> ambiguous --.  nobody knows: a person has to decide
                                        |
              accepted (adopt) <--------+--> released     "it was not accepted"
                                        +--> abandoned    "leave it": it stays spent and named
                                        '--> resubmitted  "send it again": it stays spent

Only two sources move a purchase: *news*, an outcome of its exchange, and a person's *choice*. The
tables are `AFTER_NEWS` and `AFTER_CHOICE`; `concluded` and `decided` apply them. Three rules:

1. **News never makes a paid id disappear.** If a response arrives after somebody believed the
   sender dead, and even after a person has decided, its task becomes the purchase's task. If a
   person has named another one, both are kept. News that says less than what is known takes
   nothing away.
2. **Nobody decides while anybody can still be sending.** An armed purchase becomes ambiguous
   (`UNKNOWN_END`) only once its sender is certainly gone: a store knows when.
3. **One task belongs to one purchase.** If a response names a task that another purchase has, the
   service has perhaps lost one of the two, or charged once. That purchase is ambiguous, and the id
   is its candidate (`contested`). So no outcome is ever impossible to record because of what it
   says.

A purchase *counts as spent* in every state except `released`. It *holds its name* while it is
armed, accepted, ambiguous or abandoned: as long as it does, nobody else buys under that name.

**Budgets are sums by tag and day.** A purchase counts on the day in UTC on which it was armed,
under each of its tags and under `EVERYTHING`. An amount may be unknown, which is not zero: it
blocks the budgets of its measure and tags until a person gives the amount. A budget for a key
alone has a sum for each value of that key, and a purchase without the key does not fit into it. A
stored budget that counts only from some moment on has a sum of its own, and each purchase that was
armed since is marked as counting there. No clock says which those are: one that was set back would
let purchases escape it.

**An item of a batch is work, and follows its last purchase** (`followed`). It is never judged a
second time.

What a store has to do is little, and impossible to leave out: in one transaction, lock the
purchases in question, *read* them, ask the functions of this package, and *write* what they return.
"""

from muybridge_protocol.purchases.amounts import (
    DAY,
    NOTHING,
    UNKNOWN_CALL,
    Amounts,
    Measure,
    Sums,
    all_countable,
    amounts_of,
    countable,
    day_of,
    minus,
    plus,
    read_amounts,
    read_sums,
    totals,
    written_amounts,
    written_sums,
)
from muybridge_protocol.purchases.budget import (
    KNOWN_BY,
    Budget,
    BudgetUse,
    Number,
    Period,
    StoredBudget,
    read_budget,
    written_budget,
)
from muybridge_protocol.purchases.items import Item, followed
from muybridge_protocol.purchases.purchase import (
    UNKNOWN_END,
    CannotDecide,
    Order,
    Outcome,
    Purchase,
    concluded,
    contested,
    decided,
    priced,
)
from muybridge_protocol.purchases.states import (
    AFTER_CHOICE,
    AFTER_NEWS,
    NAMED,
    STEPS,
    Choice,
    Stage,
    State,
)
from muybridge_protocol.purchases.tags import (
    EVERYTHING,
    GROUPS,
    OwnTags,
    Tags,
    checked_tags,
    is_key,
    labels_of,
    read_tags,
    tags_in,
)
from muybridge_protocol.purchases.verdict import judged

__all__ = [
    "AFTER_CHOICE",
    "AFTER_NEWS",
    "DAY",
    "EVERYTHING",
    "GROUPS",
    "KNOWN_BY",
    "NAMED",
    "NOTHING",
    "STEPS",
    "UNKNOWN_CALL",
    "UNKNOWN_END",
    "Amounts",
    "Budget",
    "BudgetUse",
    "CannotDecide",
    "Choice",
    "Item",
    "Measure",
    "Number",
    "Order",
    "Outcome",
    "OwnTags",
    "Period",
    "Purchase",
    "Stage",
    "State",
    "StoredBudget",
    "Sums",
    "Tags",
    "all_countable",
    "amounts_of",
    "checked_tags",
    "concluded",
    "contested",
    "countable",
    "day_of",
    "decided",
    "followed",
    "is_key",
    "judged",
    "labels_of",
    "minus",
    "plus",
    "priced",
    "read_amounts",
    "read_budget",
    "read_sums",
    "read_tags",
    "tags_in",
    "totals",
    "written_amounts",
    "written_budget",
    "written_sums",
]
