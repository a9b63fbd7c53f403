"""Pictures of what plans do: the frames of windows, the relations of periods, the graphs of multi-way joins. Pages and
notebooks reach them by `plan_pictures.pictures_of`."""
