import { getRouteApi } from "@tanstack/react-router";
import { NewObjectButton, ObjectIconButtons } from "@/features/objects/object-buttons";
import { ReservationsPage } from "@/features/reservations/reservations-page";

const route = getRouteApi("/app/reservations");

export function ReservationsRoute() {
  const period = route.useSearch();
  const navigate = route.useNavigate();
  return (
    <ReservationsPage
      period={period}
      onPeriod={(search) => void navigate({ search })}
      actions={<NewObjectButton kinds={["Reservation"]} />}
      buttons={(name) => <ObjectIconButtons reference={{ kind: "Reservation", name }} />}
    />
  );
}
