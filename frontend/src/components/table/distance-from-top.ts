/** How far down its page an element begins, in px: a list that ends where the window does needs no second scroll bar. */
import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

/** Before anything is measured: the bar, and a title. */
const GUESS = 158;

export function useDistanceFromTop() {
  const [distance, setDistance] = useState(GUESS);
  const element = useRef<HTMLDivElement>(null);
  const measure = useCallback(() => {
    const top = element.current?.getBoundingClientRect().top;
    if (top !== undefined) setDistance(Math.round(top + window.scrollY));
  }, []);
  // At each drawing: filters that take another line, or a heading that comes late, move the list.
  useLayoutEffect(measure);
  useEffect(() => {
    window.addEventListener("resize", measure);
    return () => window.removeEventListener("resize", measure);
  }, [measure]);
  return [distance, element] as const;
}
