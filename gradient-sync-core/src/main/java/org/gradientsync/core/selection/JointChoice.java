package org.gradientsync.core.selection;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.gradientsync.Communicator;
import org.gradientsync.GradientSync;
import org.gradientsync.UnavailableException;
import org.gradientsync.core.backend.Answers;
import org.gradientsync.spi.Availability;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Chooses one of several providers on all ranks alike: each rank says which ones it can use, and
 * the best that all can use is chosen.
 */
public final class JointChoice {
  private static final Logger log = LoggerFactory.getLogger(GradientSync.class);
  private static final String USABLE = "usable";

  private final Communicator communicator;
  private final String what;
  private final String asked; // or null

  /**
   * @param what what is chosen, for texts
   * @param asked the name that the user has given, or null
   */
  JointChoice(Communicator communicator, String what, String asked) {
    this.communicator = communicator;
    this.what = what;
    this.asked = asked;
  }

  /**
   * Chooses the provider of the highest priority that all ranks can use, or the one that the user
   * named.
   *
   * @param rejected receives the reason against each better provider
   * @param alternatives receives the reason against each other provider
   */
  <P> P choose(
      List<P> providers,
      Function<P, String> name,
      Function<P, Availability> availability,
      Map<String, String> rejected,
      Map<String, String> alternatives) {
    Map<String, String> own = new LinkedHashMap<>();
    for (P provider : providers) {
      Availability available;
      try {
        available = availability.apply(provider);
        if (available == null) {
          available =
              Availability.no(
                  "its provider returned null as its availability: provider="
                      + provider.getClass().getName()
                      + "; mend the provider");
        }
      } catch (RuntimeException | LinkageError e) {
        available = Availability.no("finding out failed: " + e);
      }
      own.put(name.apply(provider), available.usable() ? USABLE : available.reason());
    }
    List<String[]> answers = exchange(own);
    for (P provider : providers) {
      String candidate = name.apply(provider);
      if (asked != null && !asked.equalsIgnoreCase(candidate)) {
        continue;
      }
      String cause = rejection(candidate, answers);
      if (cause == null) {
        alternatives.clear(); // remove those of an earlier choice that could not be created
        for (P each : providers) {
          String other = name.apply(each);
          if (!other.equals(candidate)) {
            String rejection = rejection(other, answers);
            String beaten = asked == null ? "slower than " + candidate : "not asked for";
            alternatives.put(other, rejection == null ? USABLE + ", but " + beaten : rejection);
          }
        }
        return provider;
      }
      boolean rejectedBefore = rejected.put(candidate, cause) != null; // by an earlier choice
      List<Integer> able = ranksThatCanUse(candidate, answers);
      // A rank that can use it logs: rank 0 may not have it on its class path and not get here.
      if (asked == null
          && !rejectedBefore
          && !able.isEmpty()
          && able.get(0) == communicator.rank()) {
        log.warn(
            "{} {} is for no rank, though ranks {} can use it: {}", what, candidate, able, cause);
      }
    }
    throw none(own, rejected);
  }

  private UnavailableException none(Map<String, String> own, Map<String, String> rejected) {
    if (asked != null && own.keySet().stream().noneMatch(asked::equalsIgnoreCase)) {
      return new UnavailableException(
          "no such %s: %s=%s, rank=%s%s; known here: %s"
              .formatted(
                  what,
                  what,
                  asked,
                  communicator.rank(),
                  Providers.whereIs(what, asked),
                  String.join(", ", own.keySet())));
    }
    StringBuilder causes = new StringBuilder();
    rejected.forEach((k, v) -> causes.append("\n  ").append(k).append(": ").append(v));
    return new UnavailableException(
        (asked != null ? what + " " + asked + " is not available" : "no " + what + " is available")
            + ", rank="
            + communicator.rank()
            + ":"
            + causes);
  }

  /** The reason of the first rank that cannot use a candidate, or null if all ranks can. */
  public static String rejection(String candidate, List<String[]> answers) {
    for (int rank = 0; rank < answers.size(); rank++) {
      String verdict = verdict(candidate, answers.get(rank));
      if (!verdict.equals(USABLE)) {
        return verdict + " (rank " + rank + ")";
      }
    }
    return null;
  }

  private static List<Integer> ranksThatCanUse(String candidate, List<String[]> answers) {
    return IntStream.range(0, answers.size())
        .filter(rank -> verdict(candidate, answers.get(rank)).equals(USABLE))
        .boxed()
        .toList();
  }

  private static String verdict(String candidate, String[] answer) {
    String verdict = "not on the class path";
    for (int i = 1; i + 1 < answer.length; i += 2) {
      if (answer[i].equals(candidate)) {
        verdict = answer[i + 1];
      }
    }
    return verdict;
  }

  /**
   * Returns every rank's answer: the name that its user asked for, then pairs of name and verdict.
   */
  private List<String[]> exchange(Map<String, String> own) {
    StringBuilder text = new StringBuilder(asked == null ? "" : asked);
    own.forEach((k, v) -> text.append('\0').append(k).append('\0').append(v));
    return Answers.exchange(communicator, text.toString());
  }
}
