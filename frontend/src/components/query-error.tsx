/** An error of reading: why, and a button where another attempt can help. */
import { ErrorState } from "./error-state";

interface QueryErrorProps {
  title: string;
  /** `status`: that of the server's answer, if it was one. */
  query: { error: (Error & { status?: number }) | null; refetch: () => unknown };
}

export function QueryError({ title, query: { error, refetch } }: QueryErrorProps) {
  if (error === null) return null;
  // What is forbidden or not there is so the next time too; the message says what it needs.
  const forGood = error.status === 403 || error.status === 404;
  return (
    <ErrorState title={title} message={error.message} onRetry={forGood ? undefined : () => void refetch()} />
  );
}
