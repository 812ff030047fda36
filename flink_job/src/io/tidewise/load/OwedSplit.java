package io.tidewise.load;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import org.apache.flink.api.connector.source.SourceSplit;
import org.apache.flink.core.io.SimpleVersionedSerializer;

/**
 * One share of the owed records: of the endless sequence 0, 1, 2, ... the split owes those that leave {@code index}
 * when divided by {@code splits}. {@code emitted} is the state that a checkpoint keeps, so records after it are
 * emitted again.
 */
public final class OwedSplit implements SourceSplit {
    final int index;
    final int splits;
    volatile long emitted; // written by the task thread, read by the thread that serves metrics

    OwedSplit(int index, int splits, long emitted) {
        this.index = index;
        this.splits = splits;
        this.emitted = emitted;
    }

    @Override
    public String splitId() {
        return "share-" + index + "-of-" + splits;
    }

    /** Records of this split among the first {@code dueInAll} of the sequence. */
    long due(double dueInAll) {
        return Math.max(0L, Math.floorDiv((long) Math.floor(dueInAll) + splits - 1 - index, (long) splits));
    }

    long sequenceOfNext() {
        return index + emitted * splits;
    }

    /** A copy with the emitted count of this moment. */
    OwedSplit snapshot() {
        return new OwedSplit(index, splits, emitted);
    }

    /** Writes single splits (readers' state) and lists of them (the enumerator's state). */
    static final class ListSerializer implements SimpleVersionedSerializer<List<OwedSplit>> {
        @Override
        public int getVersion() {
            return 1;
        }

        @Override
        public byte[] serialize(List<OwedSplit> shares) throws IOException {
            ByteArrayOutputStream bytes = new ByteArrayOutputStream();
            DataOutputStream out = new DataOutputStream(bytes);
            out.writeInt(shares.size());
            for (OwedSplit share : shares) {
                out.writeInt(share.index);
                out.writeInt(share.splits);
                out.writeLong(share.emitted);
            }
            return bytes.toByteArray();
        }

        @Override
        public List<OwedSplit> deserialize(int version, byte[] serialized) throws IOException {
            DataInputStream in = new DataInputStream(new ByteArrayInputStream(serialized));
            int count = in.readInt();
            List<OwedSplit> shares = new ArrayList<>(count);
            for (int i = 0; i < count; i++) {
                shares.add(new OwedSplit(in.readInt(), in.readInt(), in.readLong()));
            }
            return shares;
        }
    }

    /** The same format for one split. */
    static final class Serializer implements SimpleVersionedSerializer<OwedSplit> {
        private final ListSerializer lists = new ListSerializer();

        @Override
        public int getVersion() {
            return lists.getVersion();
        }

        @Override
        public byte[] serialize(OwedSplit share) throws IOException {
            return lists.serialize(List.of(share));
        }

        @Override
        public OwedSplit deserialize(int version, byte[] serialized) throws IOException {
            return lists.deserialize(version, serialized).get(0);
        }
    }
}
