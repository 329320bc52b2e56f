import { numberFormat } from "./number-format.ts";

const grouped = numberFormat("en-US", { minimumFractionDigits: 2, maximumFractionDigits: 2 });

/** As people write it: "$0", "< $0.01", "$0.30", "$1,204.10". */
export function dollars(usd: number): string {
  if (usd < 0) return `-${dollars(-usd)}`;
  if (usd === 0) return "$0";
  return usd < 0.005 ? "< $0.01" : `$${grouped(usd)}`;
}
