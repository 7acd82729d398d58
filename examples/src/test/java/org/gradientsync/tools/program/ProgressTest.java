package org.gradientsync.tools.program;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.io.PrintWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;
import org.gradientsync.examples.GradientAverage;
import org.gradientsync.examples.Run;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests the line for users who wait. */
class ProgressTest {
  private static final Pattern TOLD =
      Pattern.compile("program: step 1 of 3, loss 0.5, \\d+ s ago, \\d+ s so far");

  /** A writer on which a test can wait for a line. */
  private static final class Lines extends PrintWriter {
    private final StringWriter text;
    private final CountDownLatch printed = new CountDownLatch(1);

    Lines() {
      this(new StringWriter());
    }

    private Lines(StringWriter text) {
      super(text, true);
      this.text = text;
    }

    @Override
    public void println(String line) {
      super.println(line);
      printed.countDown();
    }
  }

  @Test
  void saysWhatIsBeingDone() throws InterruptedException {
    Lines err = new Lines();
    try (Progress progress = new Progress(err, "program", Duration.ofMillis(5), false)) {
      progress.stage("averaging");
      assertTrue(err.printed.await(30, TimeUnit.SECONDS));
    }
    assertTrue(err.text.toString().startsWith("program: averaging, "), err.text::toString);
  }

  @Test
  void isSilentWhereNothingWasNoted() throws InterruptedException {
    Lines err = new Lines();
    try (Progress progress = new Progress(err, "program", Duration.ofMillis(5), false)) {
      assertEquals(false, err.printed.await(100, TimeUnit.MILLISECONDS), progress::toString);
    }
    assertEquals("", err.text.toString());
  }

  @Test
  void showsABarOnATerminal() {
    Lines err = new Lines();
    try (Progress progress = new Progress(err, "program", Duration.ofHours(1), true)) {
      progress.bar(1, 3, "loss 0.5");
      progress.bar(3, 3, "loss 0.1");
    }
    String end = "\u001b[K";
    assertEquals(
        "\r["
            + "=".repeat(10)
            + " ".repeat(20)
            + "] step 1 of 3, loss 0.5"
            + end
            + "\r["
            + "=".repeat(30)
            + "] step 3 of 3, loss 0.1"
            + end
            + "\r"
            + end,
        err.text.toString());
  }

  @Test
  void tellsTheFiguresWhereThereIsNoTerminal() throws InterruptedException {
    Lines err = new Lines();
    try (Progress progress = new Progress(err, "program", Duration.ofMillis(5), false)) {
      progress.bar(1, 3, "loss 0.5");
      assertTrue(err.printed.await(30, TimeUnit.SECONDS));
    }
    assertTrue(
        err.text.toString().startsWith("program: step 1 of 3, loss 0.5, "), err.text::toString);
  }

  @Test
  @Timeout(30)
  void tellsWhenAStepTakesLong() throws InterruptedException {
    Lines err = new Lines();
    try (Progress progress = new Progress(err, "program", Duration.ofMillis(5), false)) {
      progress.bar(1, 3, "loss 0.5");
      while (!TOLD.matcher(err.text.toString()).find()) {
        Thread.sleep(1);
      }
      progress.stage("done");
    }
  }

  @Test
  void isSilentWhereNobodyWaitsLong() {
    assertEquals("", Run.of(new GradientAverage(), "--local=2", "--size=10").exits(0).err());
  }
}
