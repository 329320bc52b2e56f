import { parser } from "@prometheus-io/lezer-promql";

export interface Selector {
  readonly metric: string;
  readonly matchers: readonly { readonly label: string; readonly operator: string; readonly value: string }[];
}

export interface Expression {
  readonly selectors: readonly Selector[];
  /** By which sums are kept apart. */
  readonly grouped: readonly string[];
}

/** What an expression of PromQL asks for, by Prometheus's own grammar. Throws where it is none. */
export function expression(text: string): Expression {
  const selectors: Selector[] = [];
  const grouped: string[] = [];
  const said = ({ from, to }: { readonly from: number; readonly to: number }) => text.slice(from, to);
  parser.parse(text).iterate({
    enter: (node) => {
      if (node.type.isError) throw new Error(`no PromQL at ${node.from}: ${text}`);
      if (node.name === "VectorSelector") {
        const name = node.node.getChild("Identifier");
        const matchers = node.node.getChild("LabelMatchers")?.getChildren("UnquotedLabelMatcher") ?? [];
        selectors.push({
          metric: name ? said(name) : "",
          matchers: matchers.map((one) => {
            const [, label = "", operator = "", value = ""] =
              /^([\w]+)\s*(=~|!~|!=|=)\s*"(.*)"$/.exec(said(one)) ?? [];
            return { label, operator, value };
          }),
        });
      }
      if (node.name === "GroupingLabels")
        grouped.push(
          ...node.node.getChildren("LabelName").map(said),
          ...node.node.getChildren("UnquotedLabel").map(said),
        );
    },
  });
  return { selectors, grouped };
}
