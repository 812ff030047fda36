package io.tidewise.load;

import java.io.IOException;
import java.io.Serializable;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;

/**
 * A rate over time that repeats: how many records are due after a number of wall-clock seconds.
 *
 * <p>The file holds lines {@code second,rate_per_s}; the rate is linear between two lines, and the last second closes
 * the cycle. Time compression c runs through c trace seconds per wall second; the rates themselves stay per wall
 * second.
 */
public final class RateTrace implements Serializable {
    private static final long serialVersionUID = 1L;

    private final double[] seconds;
    private final double[] ratesPerS;
    private final double[] cumulative; // records due from the cycle's start to seconds[i], at compression 1
    private final double compression;

    RateTrace(double[] seconds, double[] ratesPerS, double compression) {
        if (seconds.length < 2 || seconds[0] != 0.0) {
            throw new IllegalArgumentException("a rate trace needs at least two lines, the first at second 0");
        }
        if (!(compression > 0)) {
            throw new IllegalArgumentException("compression must be positive, not " + compression);
        }
        this.seconds = seconds;
        this.ratesPerS = ratesPerS;
        this.compression = compression;
        this.cumulative = new double[seconds.length];
        for (int i = 1; i < seconds.length; i++) {
            double step = seconds[i] - seconds[i - 1];
            if (!(step > 0) || !(ratesPerS[i] >= 0) || !(ratesPerS[i - 1] >= 0)) {
                throw new IllegalArgumentException("point " + (i + 1) + ": seconds must rise, rates not be negative");
            }
            cumulative[i] = cumulative[i - 1] + step * (ratesPerS[i] + ratesPerS[i - 1]) / 2;
        }
    }

    /** Reads a trace; lines that start with a letter or # are headers. */
    public static RateTrace read(Path file, double compression) throws IOException {
        List<double[]> points = Files.readAllLines(file).stream()
                .map(String::strip)
                .filter(line -> !line.isEmpty() && (Character.isDigit(line.charAt(0)) || line.charAt(0) == '-'))
                .map(line -> Arrays.stream(line.split(",")).mapToDouble(Double::parseDouble).toArray())
                .toList();
        for (double[] point : points) {
            if (point.length != 2) {
                throw new IllegalArgumentException(file + ": each line must be second,rate_per_s");
            }
        }
        return new RateTrace(
                points.stream().mapToDouble(point -> point[0]).toArray(),
                points.stream().mapToDouble(point -> point[1]).toArray(),
                compression);
    }

    /** Records due after that many wall-clock seconds. */
    public double dueAfter(double elapsedS) {
        double position = Math.max(0.0, elapsedS) * compression;
        double period = seconds[seconds.length - 1];
        double cycles = Math.floor(position / period);
        return (cycles * cumulative[seconds.length - 1] + withinCycle(position - cycles * period)) / compression;
    }

    /** Wall-clock seconds after which that many records are due: the inverse of {@link #dueAfter}. */
    public double secondsUntil(double records) {
        double inAll = Math.max(0.0, records) * compression;
        double perCycle = cumulative[seconds.length - 1];
        double cycles = perCycle > 0 ? Math.floor(inAll / perCycle) : 0;
        double rest = inAll - cycles * perCycle;
        int found = Arrays.binarySearch(cumulative, rest);
        int left = Math.min(found >= 0 ? found : -found - 2, seconds.length - 2);
        double step = seconds[left + 1] - seconds[left];
        double slope = (ratesPerS[left + 1] - ratesPerS[left]) / step;
        double missing = rest - cumulative[left];
        double root = ratesPerS[left] + Math.sqrt(Math.max(0.0, ratesPerS[left] * ratesPerS[left] + 2 * slope * missing));
        double into = root > 0 ? Math.min(step, 2 * missing / root) : 0;
        return (cycles * seconds[seconds.length - 1] + seconds[left] + into) / compression;
    }

    private double withinCycle(double position) {
        int found = Arrays.binarySearch(seconds, position);
        int left = Math.min(found >= 0 ? found : -found - 2, seconds.length - 2);
        double into = position - seconds[left];
        double slope = (ratesPerS[left + 1] - ratesPerS[left]) / (seconds[left + 1] - seconds[left]);
        return cumulative[left] + into * (ratesPerS[left] + slope * into / 2);
    }
}
