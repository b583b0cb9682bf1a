import { getRouteApi } from "@tanstack/react-router";
import { QueueHistory } from "@/features/history/queue-history";
import { NewObjectButton, ObjectButtons } from "@/features/objects/object-buttons";
import { CohortPage } from "@/features/queues/cohort-page";

const route = getRouteApi("/app/cohorts/$name");

export function CohortRoute() {
  const { name } = route.useParams();
  const navigate = route.useNavigate();
  return (
    <CohortPage
      key={name}
      name={name}
      history={<QueueHistory scope="cohort" name={name} />}
      actions={(isDeclared) =>
        isDeclared ? (
          <ObjectButtons
            reference={{ kind: "Cohort", name }}
            onDeleted={() => void navigate({ to: "/queues" })}
          />
        ) : (
          <NewObjectButton kinds={["Cohort"]} beginning={{ name }} />
        )
      }
    />
  );
}
