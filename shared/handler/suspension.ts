/** Why a handler goes no further in this execution. */
export type Suspension =
  | {
      readonly kind: "sleep";
      readonly dueAt: number;
      /** Other code of the handler may run beside it. */
      readonly lingers?: boolean;
    }
  | {
      readonly kind: "wait";
      /** Any of these signals lets it go on. */
      readonly waitingFor: readonly string[];
      readonly summary?: string;
      readonly dueAt?: number;
      /** How many of the task's signals the handler knew of. */
      readonly known: number;
      readonly lingers?: boolean;
    }
  /** The runner must stop, or has too little time for what comes next. */
  | {
      readonly kind: "handOff";
      readonly ended: boolean;
      /** Handed off before it began: how long an earlier holder's lease was waited out. */
      readonly waited?: number;
      /** How long the next invocation must have. */
      readonly needs?: number;
      /** It gets another message. */
      readonly renewed?: boolean;
    }
  | {
      readonly kind: "doubt";
      readonly effect: string;
      readonly tries: number;
      /** False when the handler's code still runs. */
      readonly ended?: boolean;
    };
