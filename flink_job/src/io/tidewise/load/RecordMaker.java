package io.tidewise.load;

import java.io.Serializable;

/** Makes the record of a place in the endless sequence; the same place always gives the same record. */
@FunctionalInterface
public interface RecordMaker<T> extends Serializable {
    T make(long sequence);
}
