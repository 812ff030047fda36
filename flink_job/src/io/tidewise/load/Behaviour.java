package io.tidewise.load;

import java.io.IOException;
import java.io.Serializable;
import java.io.StringReader;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Properties;

/**
 * What a job is to do wrong, from a file that may change while it runs: fail where enrich has a parallelism
 * (fail_at_parallelism), or take long for a snapshot (snapshot_ms).
 *
 * <p>Without a file, and while it is not there, a job does nothing wrong.
 */
final class Behaviour implements Serializable {
    private static final long serialVersionUID = 1L;

    private final String file; // empty: none

    Behaviour(String file) {
        this.file = file;
    }

    void atStart(int parallelism) throws IOException {
        if (number("fail_at_parallelism") == parallelism) {
            throw new IllegalStateException("this job fails at a parallelism of " + parallelism);
        }
    }

    void atSnapshot() throws IOException, InterruptedException {
        Thread.sleep(Math.max(0, number("snapshot_ms")));
    }

    private long number(String key) throws IOException {
        return Long.parseLong(read().getProperty(key, "-1"));
    }

    private Properties read() throws IOException {
        Properties found = new Properties();
        if (!file.isEmpty()) {
            try {
                found.load(new StringReader(Files.readString(Path.of(file))));
            } catch (NoSuchFileException missing) {
                return found;
            }
        }
        return found;
    }
}
