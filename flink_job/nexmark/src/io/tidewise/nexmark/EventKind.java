package io.tidewise.nexmark;

/** What an event is; the column {@code kind} holds the ordinal. */
enum EventKind {
    PERSON,
    AUCTION,
    BID
}
