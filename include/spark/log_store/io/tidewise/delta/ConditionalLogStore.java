package io.tidewise.delta;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Options.CreateFileOptionKeys;
import org.apache.hadoop.fs.Path;

/**
 * A commit is one object that S3 itself creates only where none is ({@code If-None-Match: *}), so that any number of
 * drivers and other clients may commit to one table.
 *
 * <p>Where the answer to a request is lost, nobody knows whose commit is there: it is read back. A commit names its
 * transaction, so equal bytes are the own ones.
 */
public final class ConditionalLogStore extends HadoopFileSystemLogStore {
  private static final int ATTEMPTS = 5;
  private static final long FIRST_WAIT_MS = 200;

  public ConditionalLogStore(Configuration configuration) {
    super(configuration);
  }

  @Override
  public void write(Path path, Iterator<String> actions, Boolean overwrite, Configuration configuration)
      throws IOException {
    byte[] content = join(actions);
    FileSystem files = path.getFileSystem(configuration);
    if (overwrite) {
      put(files.create(path, true), content);
    } else {
      createOnce(files, path, content);
    }
  }

  @Override
  public Boolean isPartialWriteVisible(Path path, Configuration configuration) {
    return false;
  }

  private static void createOnce(FileSystem files, Path path, byte[] content) throws IOException {
    IOException last = null;
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      try {
        if (attempt > 0) {
          pause(attempt);
        }
        FSDataOutputStreamBuilder<?, ?> create = files.createFile(path);
        create.overwrite(true).must(CreateFileOptionKeys.FS_OPTION_CREATE_CONDITIONAL_OVERWRITE, true);
        put(create.build(), content);
        return;
      } catch (IOException failure) {
        last = failure;
      }
      try {
        if (Arrays.equals(read(files, path), content)) {
          return;
        }
        throw new FileAlreadyExistsException(path.toString());
      } catch (FileNotFoundException nothingThere) {
        continue; // nobody has committed this version: to create it once more is safe
      } catch (FileAlreadyExistsException rival) {
        throw rival;
      } catch (IOException unread) {
        last.addSuppressed(unread);
      }
    }
    throw last;
  }

  private static void put(FSDataOutputStream output, byte[] content) throws IOException {
    try {
      output.write(content);
    } catch (IOException failure) {
      output.abort();
      throw failure;
    }
    output.close();
  }

  private static byte[] read(FileSystem files, Path path) throws IOException {
    try (FSDataInputStream input = files.open(path)) {
      return input.readAllBytes();
    }
  }

  private static byte[] join(Iterator<String> actions) {
    ByteArrayOutputStream result = new ByteArrayOutputStream();
    while (actions.hasNext()) {
      result.writeBytes((actions.next() + "\n").getBytes(StandardCharsets.UTF_8));
    }
    return result.toByteArray();
  }

  private static void pause(int attempt) throws IOException {
    try {
      Thread.sleep(FIRST_WAIT_MS << attempt);
    } catch (InterruptedException stopped) {
      Thread.currentThread().interrupt();
      throw new IOException("stopped while a commit waited to be tried again", stopped);
    }
  }
}
