package org.gradientsync.examples.hybrid;

import static java.util.stream.Collectors.joining;

import java.util.stream.IntStream;

/**
 * The places of the ranks. Tensor ranks exchange the most data, several times in each layer, so
 * they have consecutive numbers and the fastest links. Data ranks come next. Stages exchange the
 * least.
 *
 * @param tensor how many ranks share each layer
 * @param pipeline how many stages the layers are divided into
 * @param data how many copies of the model train on rows of their own
 */
public record Grid(int tensor, int pipeline, int data) {
  /** {@return the number of ranks, which may exceed what fits in an int} */
  public long ranks() {
    return (long) tensor * pipeline * data;
  }

  int rank(int stage, int dataRank, int tensorRank) {
    return (stage * data + dataRank) * tensor + tensorRank;
  }

  int tensorRank(int rank) {
    return rank % tensor;
  }

  int dataRank(int rank) {
    return rank / tensor % data;
  }

  int stage(int rank) {
    return rank / (tensor * data);
  }

  /**
   * Lists the ranks of a stage.
   *
   * @param stage from 0
   * @return for example {@code [0 1] [2 3]}, each tensor group in brackets
   */
  public String ranksOf(int stage) {
    return IntStream.range(0, data)
        .mapToObj(
            dataRank ->
                IntStream.range(0, tensor)
                    .mapToObj(tensorRank -> Integer.toString(rank(stage, dataRank, tensorRank)))
                    .collect(joining(" ", "[", "]")))
        .collect(joining(" "));
  }
}
