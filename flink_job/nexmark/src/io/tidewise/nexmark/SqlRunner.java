package io.tidewise.nexmark;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.CoreOptions;
import org.apache.flink.configuration.PipelineOptions;
import org.apache.flink.table.api.EnvironmentSettings;
import org.apache.flink.table.api.StatementSet;
import org.apache.flink.table.api.TableEnvironment;
import org.apache.flink.util.ParameterTool;

/**
 * Runs the statements of SQL files as one job with Flink's default chaining.
 *
 * <p>Arguments: --sql FILE[,FILE...] (read where the job is submitted) [--job-name nexmark] [--parallelism 1]
 * [--max-parallelism 128]; any other --name value replaces ${name} in the files. Statements end with a semicolon at
 * the end of a line. All INSERTs together are one statement set.
 */
public final class SqlRunner {
    private static final Pattern NAME = Pattern.compile("\\$\\{([a-z-]+)}");

    private SqlRunner() {}

    public static void main(String[] args) throws Exception {
        Map<String, String> given = ParameterTool.fromArgs(args).toMap();
        Configuration configuration = new Configuration();
        configuration.set(PipelineOptions.NAME, given.getOrDefault("job-name", "nexmark"));
        configuration.set(CoreOptions.DEFAULT_PARALLELISM, Integer.parseInt(given.getOrDefault("parallelism", "1")));
        configuration.set(
                PipelineOptions.MAX_PARALLELISM, Integer.parseInt(given.getOrDefault("max-parallelism", "128")));
        TableEnvironment tables = TableEnvironment.create(EnvironmentSettings.newInstance()
                .inStreamingMode()
                .withConfiguration(configuration)
                .build());
        tables.createTemporarySystemFunction("work", Work.class);
        tables.createTemporarySystemFunction("aged", Aged.class);
        tables.createTemporarySystemFunction("work_count", new WorkCount(false));
        tables.createTemporarySystemFunction("work_count_merged", new WorkCount(true));
        StatementSet inserts = tables.createStatementSet();
        for (String file : given.get("sql").split(",")) {
            for (String statement : statements(Path.of(file), given)) {
                if (statement.regionMatches(true, 0, "INSERT", 0, 6)) {
                    inserts.addInsertSql(statement);
                } else {
                    tables.executeSql(statement);
                }
            }
        }
        inserts.execute();
    }

    private static String[] statements(Path file, Map<String, String> given) throws IOException {
        StringBuilder text = new StringBuilder();
        for (String line : Files.readAllLines(file)) {
            if (!line.startsWith("--")) {
                text.append(line).append('\n');
            }
        }
        String filled = NAME.matcher(text).replaceAll(found -> Matcher.quoteReplacement(value(found.group(1), given)));
        return filled.strip().split(";\\s*(\n|$)");
    }

    private static String value(String name, Map<String, String> given) {
        if (!given.containsKey(name)) {
            throw new IllegalArgumentException("the SQL wants --" + name);
        }
        return given.get(name);
    }
}
