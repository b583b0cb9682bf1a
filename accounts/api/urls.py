"""The addresses of sessions, tokens and the audit."""

from django.urls import path

from accounts.api import audit, session, tokens

urlpatterns = [
    path("session/", session.SessionView.as_view()),
    path("auth/login/", session.LoginView.as_view()),
    path("auth/logout/", session.LogoutView.as_view()),
    path("auth/token/", tokens.TokenView.as_view()),
    path("auth/tokens/", tokens.TokenListView.as_view()),
    path("audit/", audit.AuditListView.as_view()),
    path("audit/export/", audit.AuditExportView.as_view()),
    path("auth/tokens/<uuid:id>/", tokens.TokenDetailView.as_view()),
]
